import { join } from 'node:path';
import fc from 'fast-check';
import { CreateMemoryTypeRequest } from 'proto/memory/v1/memory.ts';
import { ServiceError } from 'platform/core/errors.ts';
import { newId } from 'platform/core/ids.ts';
import type { CallContext } from 'platform/rpc/call.ts';
import { serverToken, temporaryFolder } from 'platform/service/testing.ts';
import { update, type OpenStore } from 'platform/store/store.ts';
import { TYPE_CHANGES } from '../src/changes/store.ts';
import type { Deps } from '../src/deps.ts';
import { typeChangesJob } from '../src/jobs/type-changes.ts';
import { createMemoryType } from '../src/types/create-memory-type.ts';
import { wrongAtRest, type Request } from './model-at-rest.ts';
import { command, NAMES, run } from './model-commands.ts';
import { startReplica, type Replica } from './model-replica.ts';
import { contextOf, openTestDeps } from './test-deps.ts';

const RUNS = Number(process.env.PROPERTY_RUNS ?? (process.env.TEST_ENGINES ? 10 : 200));
/** On a machine that does much else beside. */
const LONG_MS = 3_600_000;

const folder = temporaryFolder();
/** Two connections on servers; a file is open once. */
const opened: OpenStore[] = [];
/** Of a reader that no fault meets. */
let reader: Deps;
beforeAll(async () => {
  const open = async (): Promise<Deps> => {
    const { deps, opened: store } = await openTestDeps(join(folder.path, 'memory.db'), 4);
    await deps.counterShards.close();
    opened.push(store);
    return deps;
  };
  reader = await open();
  if (!opened[0]!.exclusive) await open();
});
afterAll(async () => {
  for (const each of opened) await each.close();
  folder.remove();
});

const REFUSALS = new Set<string>([
  ...['NOT_FOUND', 'ALREADY_EXISTS', 'INVALID_CONTENT', 'INVALID_REQUEST', 'KEY_CHANGED', 'OBJECT_IN_USE'],
  ...['TYPE_IN_USE', 'CONFLICT', 'SCHEMA_INCOMPATIBLE', 'TYPE_CHANGING', 'UNAVAILABLE', 'OUTCOME_UNKNOWN'],
]);

/** What a client does, and on which replica: a request, or as an operator or a lost lease would have it. */
const step = fc.record({
  on: fc.nat(1),
  work: fc.oneof(
    { weight: 8, arbitrary: command },
    { weight: 1, arbitrary: fc.constantFrom('take over' as const, 'restart' as const) },
  ),
});

/** The replicas of one run; one that dies or is stopped is replaced at once. */
async function startReplicas(count: number, chance: () => number, settings: Partial<Deps['config']>) {
  const started: Replica[] = [];
  const present: Promise<Replica>[] = [];
  const start = async (place: number): Promise<Replica> => {
    const replica = await startReplica(opened[place % opened.length]!, chance, settings);
    started.push(replica);
    return replica;
  };
  for (let place = 0; place < count; place++) present.push(start(place));
  await Promise.all(present);
  const replace = (place: number): Promise<Replica> => (present[place] = start(place));
  return {
    async at(on: number): Promise<Replica> {
      const place = on % count;
      const replica = await present[place]!;
      return replica.isDead() ? replace(place) : replica;
    },
    /** As at a deployment: the work that goes on after its request is handed over. */
    async restart(on: number): Promise<void> {
      const replica = await present[on % count]!;
      void replace(on % count);
      await replica.unlessItDies(replica.deps.background.stop());
    },
    /** Stops what lives, and waits for what the dead have sent. */
    async stop(): Promise<void> {
      for (const replica of started) {
        if (!replica.isDead()) await replica.unlessItDies(replica.deps.background.stop()).catch(() => undefined);
        await replica.settled();
        await replica.deps.counterShards.close();
      }
    },
  };
}

/** What is under way is done by this replica, as if each lease had expired: that of a dead owner, or of a slow one. */
async function takeOver({ deps }: Pick<Replica, 'deps'>, organizationId: string): Promise<void> {
  for (const { _id } of await opened[0]!.store.find(organizationId, TYPE_CHANGES, { state: 'running' }))
    await opened[0]!.platformStore.apply([
      update(TYPE_CHANGES, { _id, state: 'running' }, { set: { leaseUntil: 0 } }, { optional: true }),
    ]);
  await typeChangesJob(deps).run(new AbortController().signal);
}

it(
  'at rest every object obeys its type, every reference has its target, every total its list and every change its ' +
    'event, whatever clients did, on one replica or two that die, stop and lose their leases',
  async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.array(step, { minLength: 4, maxLength: 16 }), { minLength: 1, maxLength: 4 }),
        fc.integer({ min: 1, max: 2_147_483_646 }),
        fc.record({ count: fc.constantFrom(1, 2, 2), waitMs: fc.constantFrom(0, 1_000) }),
        async (clients, seed, { count, waitMs }) => {
          const organizationId = newId();
          let state = seed;
          const chance = () => (state = (state * 48_271) % 2_147_483_647) / 2_147_483_647;
          const requests = new Map<string, Request>();
          for (const type of NAMES.slice(0, 2)) {
            const request = CreateMemoryTypeRequest.fromPartial({ type, jsonSchema: '{}' });
            await createMemoryType(reader, request, contextOf(serverToken(organizationId)));
          }
          const settings = { MEMORY_CHANGE_WAIT_MS: waitMs, MEMORY_EVENT_CONTENT_MAX_BYTES: 32_768 };
          const replicas = await startReplicas(count, chance, settings);
          const told = async (work: () => Promise<Request['told']>, request: Partial<Request>): Promise<void> => {
            try {
              request.told = await work();
            } catch (error) {
              if (!(error instanceof ServiceError) || !REFUSALS.has(error.reason)) throw error;
              request.refusal = error.reason;
            }
          };
          await Promise.all(
            clients.map(async (steps) => {
              const principal = serverToken(organizationId);
              for (const { on, work } of steps) {
                const context: CallContext = contextOf(principal);
                const replica = await replicas.at(on);
                if (work === 'restart') await told(() => replicas.restart(on).then(() => undefined), {});
                else if (work === 'take over')
                  await told(() => replica.unlessItDies(takeOver(replica, organizationId).then(() => undefined)), {});
                else {
                  const request: Request = { command: work, actorId: principal.subject };
                  requests.set(context.requestId, request);
                  await told(() => replica.unlessItDies(run(replica.deps, context, work)), request);
                }
              }
            }),
          );
          await replicas.stop();
          await takeOver({ deps: { ...reader, instanceId: newId() } }, organizationId);
          const context = contextOf(serverToken(organizationId));
          expect(await wrongAtRest(opened.at(-1)!, reader, context, requests)).toEqual([]);
        },
      ),
      // What fails depends on timing, so no smaller example is looked for.
      { numRuns: RUNS, endOnFailure: true },
    );
  },
  LONG_MS,
);
