import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { compileSchema } from 'platform/json-schema/schema.ts';
import { REPOSITORY } from '../../../test/support/stack.ts';
import { definitionReference } from '../src/definitions/reference.ts';
import { NO_RUNNERS, testRuntimes } from './runtimes/test-runtimes.ts';

it('docs/agent-definition.md is what npm run docs writes', async () => {
  const runtimes = testRuntimes(NO_RUNNERS);
  const page = readFileSync(join(REPOSITORY, 'docs/agent-definition.md'), 'utf8');
  expect(page).toBe(definitionReference(runtimes.byType));
  await runtimes.stop();
});

it('every example of a runtime is one that its own schema accepts', async () => {
  const runtimes = testRuntimes(NO_RUNNERS);
  for (const { schema } of Object.values(runtimes.byType)) {
    const { examples } = schema as { examples: object[] };
    expect(examples).toHaveLength(1);
    expect(compileSchema(JSON.stringify(schema)).validate(examples[0])).toEqual([]);
  }
  await runtimes.stop();
});
