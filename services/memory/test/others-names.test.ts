import { join } from 'node:path';
import fc from 'fast-check';
import type { CloudEvent } from 'platform/events/bus.ts';
import { openSqliteBus } from 'platform/events/sqlite/bus.ts';
import { parseJson } from 'platform/core/parse-json.ts';
import { spelledNames, textsWith } from '../../../platform/test/json/escaped-names.ts';
import { startMemory, type Memory } from './fixture.ts';

let memory: Memory;
beforeAll(async () => {
  memory = await startMemory({ MEMORY_EVENT_CONTENT_MAX_BYTES: '1000' });
});
afterAll(() => memory.stop());

it('an organization gets its own names back, in replies and in events, and not those of another', async () => {
  const organizations = await Promise.all(
    [memory.organization(), memory.organization()].map(async (token) => ({
      token,
      typeId: (await token.type({ jsonSchema: '{}' })).id,
    })),
  );
  /** By object: its contents, the newest last. */
  const written = new Map<string, () => object[]>();
  await fc.assert(
    fc.asyncProperty(spelledNames, async (names) => {
      const { textOf, valueOf } = textsWith();
      const replies: [texts: string[], values: () => object[]][] = [];
      for (const [i, { token, typeId }] of organizations.entries()) {
        const [first, second] = [names[i]!, names[i + 2]!];
        const made = await token.object({ typeId, content: textOf(first) });
        const patched = await token.patchObject(made.id, { content: textOf(second) });
        const read = await token.getObject(made.id);
        const listed = (await token.listObjects({ pageSize: 1 })).items[0]!;
        replies.push([
          [made, patched, read, listed].map(({ content }) => content),
          () => [first, second, second, second].map(valueOf),
        ]);
        written.set(`objects/${made.id}`, () => [first, second].map(valueOf));
      }
      for (const [texts, values] of replies) expect(texts.map(parseJson)).toStrictEqual(values());
    }),
    { numRuns: Number(process.env.PROPERTY_RUNS ?? 40) },
  );
  await memory.running.runJob('relay');
  const told = await contentsOfEvents(2 * written.size);
  for (const [subject, contents] of written) expect(told.get(subject)).toStrictEqual(contents());
}, 600_000);

/** By subject of the events of objects: the contents that they tell. */
async function contentsOfEvents(count: number): Promise<Map<string, unknown[]>> {
  const bus = await openSqliteBus(join(memory.running.folder, 'events.db'));
  const told = new Map<string, unknown[]>();
  const { promise, resolve } = Promise.withResolvers<void>();
  let left = count;
  const handler = async ({ subject, data }: CloudEvent): Promise<void> => {
    if (!subject.startsWith('objects/')) return;
    told.set(subject, [...(told.get(subject) ?? []), data.content]);
    if (--left === 0) resolve();
  };
  const subscription = await bus.subscribe('memory.change.v1', 'test', handler, { maxAttempts: 1, retryDelayMs: 10 });
  await promise;
  await subscription.stop();
  await bus.close();
  return told;
}
