import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { CreateMemoryTypeRequest } from 'proto/memory/v1/memory.ts';
import { newId } from 'platform/core/ids.ts';
import { FENCES } from '../../services/memory/src/types/fences.ts';
import { OBJECTS } from '../../services/memory/src/objects/store.ts';
import { createMemoryType } from '../../services/memory/src/types/create-memory-type.ts';
import { USAGE } from '../../services/memory/src/usage/store.ts';
import { contextOf, openMemory, type Memory, type Order, type Rows, type Written } from './object-writer.ts';

const WRITERS = 32;
const OBJECTS_EACH = 4;
/** Of a machine in need of memory MongoDB may abort what no other touches. */
const HARDLY_EVER = 0.05;

describe(`writers of one memory type, ${WRITERS} in a process`, () => {
  const database = `fences-${newId()}`;
  const url = process.env.MONGODB_URL as string;
  let memory: Memory;
  let processes: ChildProcess[];
  beforeAll(async () => {
    memory = await openMemory(url, database);
    processes = await Promise.all([startProcess(), startProcess()]);
  });
  afterAll(async () => {
    await Promise.all(
      processes.map(async (child) => {
        child.disconnect();
        await once(child, 'exit');
      }),
    );
    await memory.close();
  });

  async function startProcess(): Promise<ChildProcess> {
    const child = fork(join(import.meta.dirname, 'object-writer.ts'), [url, database], { execArgv: [] });
    await answerOf(child);
    return child;
  }

  /** So many aborts for a write, of the processes that write a fresh type together; every count is exact. */
  async function abortsPerWrite(count: number, rows: Rows): Promise<number> {
    const organizationId = newId();
    const { memoryType } = await createMemoryType(
      memory.deps,
      CreateMemoryTypeRequest.fromPartial({ type: 'Written', jsonSchema: '{}' }),
      contextOf(organizationId),
    );
    const order: Order = { organizationId, typeId: memoryType!.id, rows, writers: WRITERS, objects: OBJECTS_EACH };
    const written = await Promise.all(
      processes.slice(0, count).map(async (child) => {
        child.send(order);
        return (await answerOf(child)) as Written;
      }),
    );
    const [objects, aborts] = (['objects', 'aborts'] as const).map((part) =>
      written.reduce((sum, each) => sum + each[part], 0),
    ) as [number, number];
    const { store } = memory.open;
    const sum = (counts: readonly number[]): number => counts.reduce((total, each) => total + each, 0);
    const fences = await store.find(organizationId, FENCES, {});
    const usage = await store.find(organizationId, USAGE, {});
    expect({
      objects: await store.count(organizationId, OBJECTS, {}),
      fences: sum(fences.map((fence) => fence.count)),
      moves: sum(fences.map(({ moves }) => moves)),
      usage: sum(usage.map((row) => row.objects)),
    }).toEqual({ objects, fences: objects, moves: objects, usage: objects });
    process.stdout.write(
      `${count} processes x ${WRITERS} writers, ${rows}: ${objects} objects, ${aborts} aborts, ${(aborts / objects).toFixed(2)} a write\n`,
    );
    return aborts / objects;
  }

  it('with slots they do not abort each other, in one process or across two, as they do on rows that others may have', async () => {
    const [alone, together] = [await abortsPerWrite(1, 'slots'), await abortsPerWrite(2, 'slots')];
    const atRandom = await abortsPerWrite(2, 'at random');
    expect(Math.max(alone, together)).toBeLessThan(HARDLY_EVER);
    expect(atRandom).toBeGreaterThan(4 * HARDLY_EVER);
  }, 600_000);
});

/** What the process says next. */
async function answerOf(child: ChildProcess): Promise<unknown> {
  const [[said]] = await Promise.race([
    Promise.all([once(child, 'message')]),
    once(child, 'exit').then(() => Promise.reject(new Error('a process of writers ended'))),
  ]);
  return said;
}
