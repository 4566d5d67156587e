import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { CreateMemoryTypeRequest } from 'proto/memory/v1/memory.ts';
import { newId } from 'platform/core/ids.ts';
import { FENCES } from '../../services/memory/src/types/fences.ts';
import { OBJECTS } from '../../services/memory/src/objects/store.ts';
import { createMemoryType } from '../../services/memory/src/types/create-memory-type.ts';
import { USAGE } from '../../services/memory/src/usage/store.ts';
import {
  contextOf,
  openMemoryService,
  type MemoryService,
  type RowChoice,
  type WriteOrder,
  type WriteResult,
} from './object-writer.ts';

const WRITERS = 32;
const OBJECTS_EACH = 4;
/** Aborts per write without conflicts: short of memory, MongoDB may abort a transaction that no other one touches. */
const MAX_ABORTS_WITHOUT_CONFLICT = 0.05;

describe(`writers of one memory type, ${WRITERS} in a process`, () => {
  const database = `fences-${newId()}`;
  const url = process.env.MONGODB_URL as string;
  let memory: MemoryService;
  let processes: ChildProcess[];
  beforeAll(async () => {
    memory = await openMemoryService(url, database);
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

  /** Lets the processes write objects of a new type together and checks that every count is exact. */
  async function abortsPerWrite(count: number, rows: RowChoice): Promise<number> {
    const organizationId = newId();
    const { memoryType } = await createMemoryType(
      memory.deps,
      CreateMemoryTypeRequest.fromPartial({ type: 'Written', jsonSchema: '{}' }),
      contextOf(organizationId),
    );
    const order: WriteOrder = { organizationId, typeId: memoryType!.id, rows, writers: WRITERS, objects: OBJECTS_EACH };
    const written = await Promise.all(
      processes.slice(0, count).map(async (child) => {
        child.send(order);
        return (await answerOf(child)) as WriteResult;
      }),
    );
    const [objects, aborts] = (['objects', 'aborts'] as const).map((name) =>
      written.reduce((sum, each) => sum + each[name], 0),
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
      `${count} processes x ${WRITERS} writers, ${rows}: ${objects} objects, ` +
        `${aborts} aborts, ${(aborts / objects).toFixed(2)} a write\n`,
    );
    return aborts / objects;
  }

  it('do not abort each other with slots, in one process or in two; on random rows they do', async () => {
    const [alone, together] = [await abortsPerWrite(1, 'slots'), await abortsPerWrite(2, 'slots')];
    const atRandom = await abortsPerWrite(2, 'at random');
    expect(Math.max(alone, together)).toBeLessThan(MAX_ABORTS_WITHOUT_CONFLICT);
    expect(atRandom).toBeGreaterThan(4 * MAX_ABORTS_WITHOUT_CONFLICT);
  }, 600_000);
});

/** The next message of the process. */
async function answerOf(child: ChildProcess): Promise<unknown> {
  const [[message]] = await Promise.race([
    Promise.all([once(child, 'message')]),
    once(child, 'exit').then(() => Promise.reject(new Error('A process of writers has ended'))),
  ]);
  return message;
}
