import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { compileSchema, type CompiledSchema } from 'platform/json-schema/schema.ts';
import { ServiceError } from 'platform/core/errors.ts';

interface Group {
  description: string;
  schema: object | boolean;
  tests: { description: string; data: unknown; valid: boolean }[];
}
/** Cases "draft/file: group" or "draft/file: group: test" by the reason of the difference. */
type Cases = Record<string, string[]>;
interface Differences {
  /** Schemas that are not accepted, by what the service answers. */
  refused: Cases;
  /** Values whose verdict is not that of the suite. */
  verdicts: Cases;
}

const FOLDER = join(import.meta.dirname, 'official-suite');
const DIFFERENCES = join(import.meta.dirname, 'official-suite-differences.json');
const documented = JSON.parse(readFileSync(DIFFERENCES, 'utf8')) as Differences;

const SCHEMA_OF_DRAFT: Record<string, string | undefined> = {
  'draft2020-12': undefined,
  'draft2019-09': 'https://json-schema.org/draft/2019-09/schema',
  draft7: 'http://json-schema.org/draft-07/schema#',
  draft6: 'http://json-schema.org/draft-06/schema#',
  draft4: 'http://json-schema.org/draft-04/schema#',
};

function groups(): [name: string, group: Group][] {
  return Object.entries(SCHEMA_OF_DRAFT).flatMap(([draft, $schema]) =>
    (readdirSync(join(FOLDER, draft), { recursive: true }) as string[])
      .filter((file) => file.endsWith('.json'))
      .sort()
      .flatMap((file) =>
        (JSON.parse(readFileSync(join(FOLDER, draft, file), 'utf8')) as Group[]).map((group): [string, Group] => [
          `${draft}/${file}: ${group.description}`,
          $schema !== undefined && typeof group.schema === 'object'
            ? { ...group, schema: { $schema, ...group.schema } }
            : group,
        ]),
      ),
  );
}

function compileOrRefusal(schema: object | boolean): CompiledSchema | string {
  try {
    return compileSchema(JSON.stringify(schema));
  } catch (error) {
    if (error instanceof ServiceError && error.reason === 'INVALID_SCHEMA') return error.details[0]!.message;
    throw error;
  }
}

const reasonOf = (verdict: string): string =>
  Object.entries(documented.verdicts).find(([, cases]) => cases.includes(verdict))?.[0] ?? 'not explained';

function differences(): { count: number; found: Differences } {
  const found: Differences = { refused: {}, verdicts: {} };
  let count = 0;
  for (const [name, { schema, tests }] of groups()) {
    count += tests.length;
    const compiled = compileOrRefusal(schema);
    if (typeof compiled === 'string') {
      (found.refused[compiled] ??= []).push(name);
      continue;
    }
    for (const { description, data, valid } of tests) {
      if ((compiled.validate(data).length === 0) === valid) continue;
      const verdict = `${name}: ${description}`;
      (found.verdicts[reasonOf(verdict)] ??= []).push(verdict);
    }
  }
  return { count, found };
}

describe('the official test suite of JSON Schema', () => {
  it('agrees on each schema and each value, but for those that are listed with the reason', () => {
    const { count, found } = differences();
    if (process.env['UPDATE_DIFFERENCES'] === '1') writeFileSync(DIFFERENCES, `${JSON.stringify(found, null, 2)}\n`);
    expect(count).toBeGreaterThan(7_500);
    expect(found).toEqual(documented);
    expect(Object.keys(documented.verdicts)).not.toContain('not explained');
  });
});
