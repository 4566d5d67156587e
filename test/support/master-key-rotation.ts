import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { makeMasterKey, masterKeysIn, readMasterKeyFile } from 'platform/core/master-key.ts';
import { openSealing, type Sealing } from 'platform/core/sealing.ts';
import { StartError } from 'platform/core/start-error.ts';
import { resealJob, type SealedDocuments } from 'platform/jobs/reseal.ts';
import { planRetirement, rotateMasterKey } from 'platform/rpc/master-keys.ts';
import { masterKeyCheck } from 'platform/service/master-key-check.ts';

const OVERLAP_MS = 600_000;
const never = new AbortController().signal;

/** What a service seals, for the test of a rotation. */
export interface SealingService<D> {
  documents: SealedDocuments<D>;
  /** Stores something new, or another value, as a replica does. */
  write(sealing: Sealing, number: number): Promise<void>;
  /** Expects that all of use that was written opens at a replica, and is what was written. */
  expectAll(sealing: Sealing): Promise<void>;
  close(): Promise<void>;
}
export interface TestTime {
  now(): number;
}

const replica = fc.nat(1);
const step = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: fc.constantFrom('rotate', 'pass', 'pass', 'retire') }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constantFrom('deliver', 'restart'), replica }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('write'), replica, number: fc.nat(9) }) },
  // A process is killed before or after one of its writes.
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('reseal'),
      replica,
      killedAt: fc.option(fc.nat(1)),
      written: fc.boolean(),
    }),
  },
);
type Step = { kind: string; replica?: number; number?: number; killedAt?: number | null; written?: boolean };
const rotationSteps = fc.array(step, { minLength: 20, maxLength: 40 });

/** Stands for kill -9 at a write. */
function killing<D>(documents: SealedDocuments<D>, { killedAt, written }: Step): SealedDocuments<D> {
  let left = killedAt ?? Number.POSITIVE_INFINITY;
  return {
    ...documents,
    async replace(document, renew) {
      left -= 1;
      if (left < 0 && !written) throw new Error('killed');
      const replaced = await documents.replace(document, renew);
      if (left < 0) throw new Error('killed');
      return replaced;
    },
  };
}

/**
 * Takes the steps with two replicas that each have a file of their own, which the operator's file reaches at any time
 * within the overlap. Expects after every step that everything opens at both, and at a replica that starts now; and in
 * the end, that the rotation can be completed.
 */
async function expectNothingLostInRotation<D>(
  folder: string,
  steps: readonly Step[],
  open: (time: TestTime) => Promise<SealingService<D>>,
): Promise<{ retired: number; refused: number; killed: number }> {
  mkdirSync(folder, { recursive: true });
  let ms = Date.now();
  const clock = { now: () => ms };
  const service = await open(clock);
  const { documents } = service;
  const operators = join(folder, 'master-key');
  writeFileSync(operators, makeMasterKey());
  const replicas = [0, 1].map((index) => {
    const file = join(folder, `replica-${index}`);
    copyFileSync(operators, file);
    return { file, sealing: openSealing(file, { clock }) };
  });
  const seen = { retired: 0, refused: 0, killed: 0 };
  const restart = (one: (typeof replicas)[0]): void => {
    one.sealing.close();
    one.sealing = openSealing(one.file, { clock });
  };
  const deliver = (one: (typeof replicas)[0]): void => {
    copyFileSync(operators, one.file);
    restart(one);
  };
  async function retire(): Promise<void> {
    const plan = planRetirement(operators, ms);
    for (const { sealing } of replicas) {
      const { masterKey, fine } = await masterKeyCheck(sealing, documents).look();
      if (masterKey !== plan.newest.id || !fine) throw new StartError('refused');
    }
    if (plan.older.length > 0) seen.retired += 1;
    plan.finish();
  }
  const actions: Record<string, (given: Step) => void | Promise<void>> = {
    rotate: () => void rotateMasterKey(operators, OVERLAP_MS, ms),
    retire,
    pass() {
      ms += OVERLAP_MS / 2;
      const [newest] = masterKeysIn(readMasterKeyFile(operators), operators);
      if (newest!.sealsFrom <= ms) replicas.forEach(deliver);
    },
    deliver: (given) => deliver(replicas[given.replica!]!),
    restart: (given) => restart(replicas[given.replica!]!),
    write: (given) => service.write(replicas[given.replica!]!.sealing, given.number!),
    async reseal(given) {
      await resealJob(replicas[given.replica!]!.sealing, killing(documents, given)).run(never);
    },
  };
  async function take(given: Step): Promise<void> {
    try {
      await actions[given.kind]!(given);
    } catch (error) {
      if ((error as Error).message === 'killed') seen.killed += 1;
      else if (error instanceof StartError) seen.refused += 1;
      else throw error;
    }
    for (const { sealing } of replicas) await service.expectAll(sealing);
    const fresh = openSealing(operators, { clock });
    await service.expectAll(fresh);
    fresh.close();
  }
  for (const given of [{ kind: 'write', replica: 0, number: 0 }, ...steps]) await take(given);
  for (const kind of ['pass', 'pass', 'pass', 'rotate', 'pass', 'pass', 'pass', 'reseal', 'retire'])
    await take({ kind, replica: 0 });
  expect(masterKeysIn(readMasterKeyFile(operators), operators)).toHaveLength(1);
  replicas.forEach(({ sealing }) => sealing.close());
  await service.close();
  return seen;
}

/**
 * The property for random rotations, each with a folder and a service of its own.
 * @param open opens the service on a folder
 */
export async function expectNothingLostInRotations<D>(
  folder: string,
  open: (folder: string, time: TestTime) => Promise<SealingService<D>>,
): Promise<void> {
  const total = { retired: 0, refused: 0, killed: 0 };
  let runs = 0;
  await fc.assert(
    fc.asyncProperty(rotationSteps, async (steps) => {
      const own = join(folder, `run-${(runs += 1)}`);
      const seen = await expectNothingLostInRotation(own, steps, (clock) => open(own, clock));
      for (const key of Object.keys(total) as (keyof typeof total)[]) total[key] += seen[key];
    }),
    { numRuns: 25 },
  );
  // nothing of this is tested if it does not happen
  for (const count of Object.values(total)) expect(count).toBeGreaterThan(0);
}

/** Sealings for a test, each under a file with these lines. */
export function testSealings(folder: string) {
  const sealings: Sealing[] = [];
  return {
    under(...lines: string[]): Sealing {
      const file = join(folder, `master-key-${sealings.length}`);
      writeFileSync(file, lines.join(''));
      sealings.push(openSealing(file));
      return sealings.at(-1)!;
    },
    close: () => sealings.forEach((sealing) => sealing.close()),
  };
}
