import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import {
  CreateMemoryObjectRequest,
  ListMemoryObjectsRequest,
  UpdateMemoryObjectRequest,
} from 'proto/memory/v1/memory.ts';
import { OUTBOX } from 'platform/events/outbox.ts';
import { serverToken, temporaryFolder } from 'platform/service/testing.ts';
import { openSqliteStore } from 'platform/store/sqlite/store.ts';
import { createMemoryObject } from '../src/objects/create-memory-object.ts';
import { listMemoryObjects } from '../src/objects/list-memory-objects.ts';
import { OBJECTS } from '../src/objects/store.ts';
import { updateMemoryObject } from '../src/objects/update-memory-object.ts';
import { FENCES } from '../src/types/fences.ts';
import { TYPES } from '../src/types/store.ts';
import { USAGE } from '../src/usage/store.ts';
import { errorOf } from './fixture.ts';
import { contextOf, openTestDeps } from './test-deps.ts';

/** What this release adds to types, and no longer has in fences. */
const asUpgraded = (documents: unknown[], collection: number): unknown[] =>
  documents.map((document) => {
    const { visibility } = document as { visibility: string };
    if (collection === 0)
      return { ...(document as object), audience: visibility === 'organization' ? ['organization'] : [] };
    return collection === 2 ? { ...(document as object), visibility: null, typeLower: null, audience: null } : document;
  });

/** What the release wrote that had one JSON text for each document. */
const RELEASE_BEFORE = readFileSync(join(import.meta.dirname, 'release-before.sql'), 'utf8');
const ORGANIZATION = '019a0000-0000-7000-8000-000000000001';

it('a file of the release before is upgraded at the start: every document is as it was, and the service goes on', async () => {
  const folder = temporaryFolder();
  const file = join(folder.path, 'memory.db');
  const before = new DatabaseSync(file);
  before.exec(RELEASE_BEFORE);
  const writtenIn = (name: string): unknown[] =>
    before
      .prepare(`SELECT doc FROM "${name}" ORDER BY id`)
      .all()
      .map(({ doc }) => {
        const { shape: _, ...document } = JSON.parse(doc as string);
        return document as unknown;
      });
  const written = ['types', 'objects', 'fences', 'usage'].map(writtenIn);
  // The outbox is a queue now, whose ids are the order of commit.
  const waiting = writtenIn('outbox').map((event, place) => ({ ...(event as object), _id: String(place + 1) }));
  before.close();
  expect([...written, waiting].map((documents) => documents.length)).toEqual([2, 3, 2, 1, 2]);

  for (let start = 0; start < 2; start++) {
    const { deps, opened } = await openTestDeps(file, 1, openSqliteStore);
    const read = [TYPES, OBJECTS, FENCES, USAGE, OUTBOX].map((one) =>
      opened.platformStore.find<never>(one as never, {}),
    );
    if (start === 0) expect(await Promise.all(read)).toStrictEqual([...written.map(asUpgraded), waiting]);
    const context = contextOf(serverToken(ORGANIZATION, { limits: { memory_objects: 9, memory_bytes: 1_000_000 } }));
    const list = async () => listMemoryObjects(deps, ListMemoryObjectsRequest.fromPartial({ key: 'c-1' }), context);
    const { total, items } = await list();
    expect([total, items.map(({ type, content }) => [type, content])]).toEqual([
      2,
      [
        ['secret', start === 0 ? '{"text":"z","n":1.0}' : '{"text":"new"}'],
        ['Customer', String.raw`{"text":"a \"quoted\" \\ text 😀 \u0001"}`],
      ],
    ]);
    const change = { pathId: items[0]!.id, content: '{"text":"new"}', updateMask: ['content'] };
    await updateMemoryObject(deps, UpdateMemoryObjectRequest.fromPartial(change), context);
    const again = CreateMemoryObjectRequest.fromPartial({ type: 'customer', key: 'c-2', content: '{}' });
    expect(await errorOf(createMemoryObject(deps, again, context))).toMatchObject({ reason: 'ALREADY_EXISTS' });
    await deps.counterShards.close();
    await opened.close();
  }
  folder.remove();
});
