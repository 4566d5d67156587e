import { join } from 'node:path';
import type { CloudEvent, Topic } from 'platform/events/bus.ts';
import { openSqliteBus } from 'platform/events/sqlite/bus.ts';
import { isoTime } from 'platform/core/clock.ts';
import { isUuid, newId } from 'platform/core/ids.ts';
import { changeEvents, contentOfEvent } from '../src/events.ts';
import { errorOf, startMemory, userOf, type Memory } from './fixture.ts';

let memory: Memory;
// Denials are counted per minute. This clock stands still, so that the test never runs into the next minute.
const startedAt = Date.now();
beforeAll(async () => {
  memory = await startMemory({}, { now: () => startedAt });
});
afterAll(() => memory.stop());

/** The events of a topic; waits until there are `count`. */
async function eventsOf(topic: Topic, count: number, of = memory): Promise<CloudEvent[]> {
  const bus = await openSqliteBus(join(of.running.folder, 'events.db'));
  const events: CloudEvent[] = [];
  let resolveComplete = (): void => undefined;
  const complete = new Promise<void>((resolve) => {
    resolveComplete = resolve;
  });
  const subscription = await bus.subscribe(
    topic,
    'test',
    async (event) => {
      if (events.push(event) === count) resolveComplete();
    },
    { maxAttempts: 1, retryDelayMs: 10 },
  );
  await complete;
  await subscription.stop();
  await bus.close();
  return events;
}

it('publishes an event and an audit entry for every change, an audit entry for denials, never content', async () => {
  const token = memory.organization({ name: 'nightly import', limits: { memory_types: 1 } });
  const { organizationId, subject } = token.principal;
  const actor = { kind: 'server_token', id: subject, name: 'nightly import', via: '' };
  const type = await token.type({ type: 'Note', jsonSchema: '{}' });
  await token.putType(type.id, { displayName: 'A note' });
  const object = await token.object({ typeId: type.id, key: 'k', content: '{"text":"confidential"}' });
  await token.patchObject(object.id, { content: '{"text":"confidential, too"}' });
  await token.patchObject(object.id, { key: 'k' });
  await errorOf(token.createObject({ typeId: type.id, key: 'k' }));
  await token.deleteObject(object.id);
  await errorOf(token.createType());
  await errorOf(token.createType());
  await token.deleteType(type.id);
  expect(await memory.running.runJob('denials')).toEqual({ ran: true, count: 1 });
  await memory.running.runJob('relay');

  const changes = await eventsOf('memory.change.v1', 6);
  const ofType = { id: type.id, type: 'Note', version: 1, actor, requestId: expect.any(String) };
  const ofObject = {
    id: object.id,
    typeId: type.id,
    type: 'Note',
    key: 'k',
    schemaVersion: 1,
    actor,
    requestId: expect.any(String),
  };
  expect(changes.map(({ type: name, subject, sequence, data }) => [name, subject, sequence, data])).toEqual([
    ['memory.type.created.v1', `types/${type.id}`, 1, { ...ofType, revision: 1 }],
    ['memory.type.updated.v1', `types/${type.id}`, 2, { ...ofType, revision: 2 }],
    ['memory.object.created.v1', `objects/${object.id}`, 1, { ...ofObject, revision: 1 }],
    ['memory.object.updated.v1', `objects/${object.id}`, 2, { ...ofObject, revision: 2 }],
    ['memory.object.deleted.v1', `objects/${object.id}`, 3, { ...ofObject, revision: 3 }],
    ['memory.type.deleted.v1', `types/${type.id}`, 3, { ...ofType, revision: 3 }],
  ]);
  for (const event of changes) {
    expect(isUuid(event.id)).toBe(true);
    expect(event).toMatchObject({ source: '/memory', organizationid: organizationId, partitionkey: organizationId });
  }

  const audit = await eventsOf('audit.v1', 7);
  expect(
    audit.map(({ data }) => [
      data.action,
      data.outcome,
      data.code,
      data.count,
      (data.target as { id: string } | null)?.id,
      data.actor,
      data.changes,
    ]),
  ).toEqual([
    ['memory_type.create', 'success', null, 1, type.id, actor, { type: [null, 'Note'] }],
    ['memory_type.update', 'success', null, 1, type.id, actor, { revision: [1, 2], displayName: ['Note', 'A note'] }],
    ['memory_object.create', 'success', null, 1, object.id, actor, { type: [null, 'Note'] }],
    ['memory_object.update', 'success', null, 1, object.id, actor, { revision: [1, 2] }],
    ['memory_object.delete', 'success', null, 1, object.id, actor, { type: ['Note', null] }],
    ['memory_type.delete', 'success', null, 1, type.id, actor, { type: ['Note', null] }],
    ['request.refused', 'denied', 'tier_limit', 2, '/memory.v1.MemoryService/CreateMemoryType', actor, undefined],
  ]);
  expect(JSON.stringify([changes, audit])).not.toContain('confidential');
});

it('publishes contents up to the size that a setting names, in change events only', async () => {
  const told = await startMemory({ MEMORY_EVENT_CONTENT_MAX_BYTES: '40' });
  try {
    const token = told.organization();
    const { id: typeId } = await token.type({ jsonSchema: '{}' });
    const { id } = await token.object({ typeId, key: 'k', content: '{"text":"confidential","n":1.0}' });
    await token.patchObject(id, { content: `{"text":"${'confidential'.repeat(9)}"}` });
    await token.patchObject(id, { content: '{"numbers":[1e20,1e20,1e20]}' });
    await token.patchObject(id, { content: '{}' });
    await token.deleteObject(id);
    await told.running.runJob('relay');
    const changes = await eventsOf('memory.change.v1', 6, told);
    expect(changes.slice(1).map(({ type, data }) => [type, data['content']])).toEqual([
      ['memory.object.created.v1', { text: 'confidential', n: 1 }],
      ['memory.object.updated.v1', undefined],
      ['memory.object.updated.v1', { numbers: [1e20, 1e20, 1e20] }],
      ['memory.object.updated.v1', {}],
      ['memory.object.deleted.v1', undefined],
    ]);
    expect(JSON.stringify(await eventsOf('audit.v1', 6, told))).not.toContain('confidential');
  } finally {
    await told.stop();
  }
});

it('tells a content as it is stored: its numbers and the order of its names stay as they were written', () => {
  const content = '{"2":1.0,"1":[1e2,-0.0],"\\"":{"__proto__":"\\\\"}}';
  const names = { typeId: newId(), type: 'Note', key: 'k', schemaVersion: 1 };
  const change = { eventType: 'memory.object.created.v1', id: newId(), revision: 1, time: isoTime(0), names } as const;
  const context = { principal: userOf(newId()), requestId: 'r' };
  const [told, untold] = [content, undefined].map((given) => {
    const [op] = changeEvents(context, { ...change, content: given });
    return (op as unknown as { document: { event: string } }).document.event;
  });
  expect(told!.endsWith(`,"requestId":"r","content":${content}}}`)).toBe(true);
  expect(untold!.endsWith(',"requestId":"r"}}')).toBe(true);
  expect(contentOfEvent({ content }, content.length)).toBe(content);
  expect(contentOfEvent({ content }, content.length - 1)).toBeUndefined();
});
