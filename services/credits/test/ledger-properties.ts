import fc from 'fast-check';
import { DAY_MS } from 'platform/core/clock.ts';
import { ledgerModel } from './ledger-model.ts';
import { organizationWith, RETENTION_MS, type LedgerHarness, type Organization } from './ledger-harness.ts';
import { faultsOf } from './ledger-invariants.ts';

/** `replica`: where there are two, the one that gets the command. */
type Command = { replica: number } & (
  | {
      do: 'grant' | 'reserve' | 'extend' | 'settle' | 'release';
      id: number;
      micros: number;
      ttlMs: number;
      maxOpen: number;
    }
  | { do: 'expire' | 'reopen' }
  | { do: 'advance'; ms: number }
);

/**
 * Ages of the ids. There are few ids and amounts are small, so that commands affect each other. One id is about to
 * leave the retention window, one is not yet in it.
 */
const AGES_MS = [0, 0, 0, 0, 0, RETENTION_MS - 2_500, -DAY_MS - 2_500];
const replica = fc.nat({ max: 1 });
const onId = fc.record({
  replica,
  do: fc.constantFrom(
    'grant' as const,
    'reserve' as const,
    'reserve' as const,
    'reserve' as const,
    'extend' as const,
    'settle' as const,
    'settle' as const,
    'release' as const,
  ),
  id: fc.nat({ max: AGES_MS.length - 1 }),
  micros: fc.nat({ max: 40 }),
  ttlMs: fc.integer({ min: 1_000, max: 4_000 }),
  maxOpen: fc.constantFrom(0, 0, 2, 3),
});
const timePasses = fc.record({ replica, do: fc.constant('advance' as const), ms: fc.integer({ min: 1, max: 3_000 }) });
const plain = (kind: 'expire' | 'reopen') => fc.record({ replica, do: fc.constant(kind) });
const command: fc.Arbitrary<Command> = fc.oneof(
  { weight: 20, arbitrary: onId },
  { weight: 4, arbitrary: timePasses },
  { weight: 1, arbitrary: plain('expire') },
  { weight: 1, arbitrary: plain('reopen') },
);

async function perform(
  harness: LedgerHarness,
  organization: Organization,
  ids: readonly string[],
  command: Command,
): Promise<unknown> {
  harness.useReplica?.(command.replica);
  switch (command.do) {
    case 'grant':
      return organization.grant(ids[command.id]!, command.micros + 1);
    case 'reserve':
      return organization.reserve(ids[command.id]!, command.micros, command);
    case 'extend':
      return organization.extend(ids[command.id]!, command.ttlMs);
    case 'settle':
      return organization.settle(ids[command.id]!, command.micros);
    case 'release':
      return organization.release(ids[command.id]!);
    case 'expire':
      return organization.expire();
    case 'advance':
      return harness.advance(command.ms);
    case 'reopen':
      return harness.reopen();
  }
}

function performOnModel(
  model: ReturnType<typeof ledgerModel>,
  nowMs: number,
  ids: readonly string[],
  command: Command,
): unknown {
  switch (command.do) {
    case 'grant':
      return model.grant({ id: ids[command.id]!, amountMicros: command.micros + 1, note: '' }, nowMs);
    case 'reserve':
      return model.reserve(
        { id: ids[command.id]!, amountMicros: command.micros, ttlMs: command.ttlMs, maxOpen: command.maxOpen },
        nowMs,
      );
    case 'extend':
      return model.extend(ids[command.id]!, command.ttlMs, nowMs);
    case 'settle':
      return model.settle(ids[command.id]!, command.micros, nowMs);
    case 'release':
      return model.release(ids[command.id]!, nowMs);
    case 'expire':
      return model.expire(nowMs);
    default:
      return undefined;
  }
}

/** Tests with random histories of commands. */
export function ledgerProperties(start: () => Promise<LedgerHarness>): void {
  let harness: LedgerHarness;
  beforeAll(async () => {
    harness = await start();
  });
  afterAll(() => harness.stop());

  it('answers random commands, repeats and restarts over time as the model does, and adds up afterwards', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(command, { maxLength: 60, size: 'max' }), async (commands) => {
        const organization = await organizationWith(harness, 0);
        const ids = AGES_MS.map((ageMs) => organization.freshId(ageMs));
        const model = ledgerModel();
        for (const one of commands) {
          const answer = await perform(harness, organization, ids, one);
          expect(answer).toEqual(performOnModel(model, harness.nowMs(), ids, one));
          harness.useReplica?.(1 - one.replica);
          expect(await organization.balance()).toEqual(model.account());
        }
        expect(await faultsOf(harness.opened.ledger, organization.organizationId)).toEqual([]);
      }),
      { numRuns: 200 },
    );
  });

  it('adds up under random interleavings of several callers, and gives all the same answer for one id', async () => {
    const bursts = fc.array(fc.array(onId, { minLength: 2, maxLength: 12 }), { minLength: 1, maxLength: 6 });
    await fc.assert(
      fc.asyncProperty(bursts, fc.array(timePasses, { minLength: 6, maxLength: 6 }), async (commands, pauses) => {
        const organization = await organizationWith(harness, 100);
        const ids = AGES_MS.map((ageMs) => organization.freshId(ageMs));
        const charges = new Map<number, Set<string>>();
        for (const [index, burst] of commands.entries()) {
          // two callers send each command at once, to different replicas where there are two
          await Promise.all(
            [...burst, ...burst.map((one) => ({ ...one, replica: 1 - one.replica }))].map(async (one) => {
              const answer = await perform(harness, organization, ids, one);
              if (one.do === 'settle' && (answer as { state?: string }).state === 'SETTLED')
                charges.set(one.id, (charges.get(one.id) ?? new Set()).add(JSON.stringify(answer)));
            }),
          );
          expect(await faultsOf(harness.opened.ledger, organization.organizationId)).toEqual([]);
          await harness.advance(pauses[index]!.ms);
        }
        for (const [id, answers] of charges) expect({ id, answers: answers.size }).toEqual({ id, answers: 1 });
        await harness.advance(5_000);
        await organization.expire();
        expect(await organization.balance()).toMatchObject({ reservedMicros: 0, openReservations: 0 });
      }),
      { numRuns: 100 },
    );
  });
}
