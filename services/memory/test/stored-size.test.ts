import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { CreateMemoryObjectRequest, CreateMemoryTypeRequest } from 'proto/memory/v1/memory.ts';
import { newId } from 'platform/core/ids.ts';
import { serverToken, temporaryFolder } from 'platform/service/testing.ts';
import { openSqliteStore } from 'platform/store/sqlite/store.ts';
import { createMemoryObject } from '../src/objects/create-memory-object.ts';
import { createMemoryType } from '../src/types/create-memory-type.ts';
import { contextOf, openTestDeps } from './test-deps.ts';

it('an object with a content of 300 bytes takes at most 700 bytes of a SQLite file, with its indexes', async () => {
  const folder = temporaryFolder();
  const file = join(folder.path, 'memory.db');
  const { deps, opened } = await openTestDeps(file, 1, openSqliteStore);
  const contexts = [newId(), newId()].map((organizationId) => contextOf(serverToken(organizationId)));
  for (const context of contexts)
    for (const type of ['one', 'two'])
      await createMemoryType(deps, CreateMemoryTypeRequest.fromPartial({ type, jsonSchema: '{}' }), context);
  const [count, together] = [4_000, 100];
  const content = `{"text":"${'"quoted" '.repeat(29).replaceAll('"', '\\"').slice(0, 289)}"}`;
  expect(content).toHaveLength(300);
  for (let first = 0; first < count; first += together)
    await Promise.all(
      Array.from({ length: together }, (_, n) =>
        createMemoryObject(
          deps,
          CreateMemoryObjectRequest.fromPartial({
            type: n % 3 === 0 ? 'one' : 'two',
            key: `key ${Math.random().toString(36).slice(2, 12)}`,
            content,
          }),
          contexts[n % 2]!,
        ),
      ),
    );
  await deps.counterShards.close();
  await opened.close();
  const db = new DatabaseSync(file, { readOnly: true });
  const { bytes } = db.prepare("SELECT sum(pgsize) AS bytes FROM dbstat WHERE name GLOB '*objects*'").get()!;
  db.close();
  folder.remove();
  expect(Math.round((bytes as number) / count)).toBeLessThanOrEqual(700);
});
