import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ServiceError } from 'platform/core/errors.ts';
import { strictJson } from 'platform/json/strict-json.ts';
import { requireMeant } from '../../src/json-schema/authored.ts';
import { compileSchema, type CompiledSchema } from '../../src/json-schema/schema.ts';

const FOLDER = join(import.meta.dirname, 'generated');
/** These are not schemas, or lead out of themselves: what is said of them. */
const REFUSED: Record<string, RegExp> = {
  'effect-document.json': /no member of it is a keyword.*"schema"/,
  'effect1-int.json': /no member of it is a keyword.*"schema"/,
  'fastapi-component.json': /this reference does not lead to a subschema/,
};

/** What POST /api/memory/types does with the text of a schema. */
function accept(text: Buffer): CompiledSchema {
  const body = Buffer.from(`{"jsonSchema":${text.toString()}}`);
  const jsonSchema = strictJson(body, ['jsonSchema']).toString().slice('{"jsonSchema":'.length, -1);
  requireMeant(JSON.parse(jsonSchema) as Record<string, unknown>, '');
  return compileSchema(jsonSchema);
}

describe('schemas as generators write them', () => {
  it.each(readdirSync(FOLDER).filter((file) => file.endsWith('.json')))('%s', (file) => {
    const schema = readFileSync(join(FOLDER, file));
    const sentence = REFUSED[file];
    if (!sentence) return void accept(schema);
    expect(() => accept(schema)).toThrow(ServiceError);
    try {
      accept(schema);
    } catch (error) {
      expect((error as ServiceError).details[0]!.message).toMatch(sentence);
    }
  });
});

describe('what release 0.2.0 refused needlessly, or judged wrongly', () => {
  const lines = readFileSync(join(FOLDER, 'verdicts.jsonl'), 'utf8').trim().split('\n');

  it.each(lines)('%s', (line) => {
    const { content, expected } = JSON.parse(line) as { content?: unknown; expected: number | string };
    // the text, because its limits may be beyond 2^53
    const text = Buffer.from(/"schema":(.*?)(?:,"content":.*)?,"expected":/.exec(line)![1]!);
    if (expected === 201) expect(accept(text).bytes).toBeGreaterThan(0);
    else if (expected === 400) expect(accept(text).validate(content)).toHaveLength(1);
    else
      expect(() => accept(text)).toThrow(
        expect.objectContaining({
          details: [{ path: expect.any(String), message: expect.stringMatching(/is no JSON Schema|an empty enum/) }],
        }),
      );
  });
});
