import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { conforms } from './schemas.ts';

/** A line of verdicts.jsonl, which verdicts.md explains. */
interface Case {
  about: string;
  schema: object;
  content: unknown;
  valid: boolean;
  others: Record<string, boolean | null>;
}
const cases = readFileSync(join(import.meta.dirname, 'verdicts.jsonl'), 'utf8')
  .trim()
  .split('\n')
  .map((line) => JSON.parse(line) as Case);

describe('where validators disagree, the verdict is that of the standards', () => {
  it.each([...new Set(cases.map(({ about }) => about))])('%s', (about) => {
    for (const { schema, content, valid } of cases.filter((one) => one.about === about)) {
      const { $schema, ...rules } = schema as { $schema: string };
      expect([schema, content, conforms(schema, content)]).toEqual([schema, content, valid]);
      // In a branch ajv makes other code. References lead from the top, so those of a schema with some do not fit.
      if (!JSON.stringify(rules).includes('$ref"'))
        expect([schema, content, conforms({ $schema, not: rules }, content)]).toEqual([schema, content, !valid]);
    }
  });

  it('and each other validator that is named differs somewhere', () => {
    expect(cases.length).toBeGreaterThan(200);
    for (const name of Object.keys(cases[0]!.others))
      expect([name, cases.some(({ valid, others }) => others[name] === !valid)]).toEqual([name, true]);
  });
});
