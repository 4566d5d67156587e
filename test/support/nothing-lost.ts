import type { AuditEntry } from 'proto/auth/v1/auth.ts';
import { newId } from 'platform/core/ids.ts';
import type { CloudEvent } from 'platform/events/bus.ts';
import { ServiceError } from 'platform/core/errors.ts';
import { eventually } from 'platform/service/test-end.ts';
import type { ProcessName } from 'platform/core/processes.ts';
import { eventsOf, isAuditConsumerCaughtUp } from './event-records.ts';
import {
  auditTrailOf,
  expectWholeTrail,
  executionsOf,
  expectLedgerConsistent,
  ledgerOf,
  objectsOf,
  type Execution,
  type TenantRef,
} from './organization-records.ts';
import { request, type Reply } from './request.ts';
import { retryWhileUnavailable } from './retry-while-unavailable.ts';
import type { RunningStack } from './stack.ts';
import { expectBytesCounted } from './stored-bytes.ts';
import type { Load, Outcome, SentRun } from './load.ts';

const ACTIVE = ['queued', 'running'];
const CHARGING = ['SETTLE', 'LATE_SETTLE'];
const ENDING = ['SETTLE', 'RELEASE', 'EXPIRE'];
const RELAYS = ['auth', 'agents', 'memory', 'credits'] as const;
const GIVE_UP_MS = 120_000;

export interface Counts {
  acknowledged: number;
  /** 503: nothing was done. */
  rejected: number;
  /** No reply, or 504. */
  unknown: number;
  /** Acknowledged changes and runs that are not there. */
  missing: number;
  /** Credits. */
  charged: number;
  /** Reservations that were charged or ended more than once. */
  doubled: number;
  reservationsLeft: number;
  events: number;
  /** Of the slowest request. */
  slowestMs: number;
}

/** Lets the jobs finish what a failure left, then compares all replies that the clients got with the stored records. */
export async function expectNothingLost(stack: RunningStack, tenant: TenantRef, load: Load): Promise<Counts> {
  await finishRuns(stack, tenant);
  await relay(stack);
  const entries = entriesByRequest(await auditTrailOf(stack, tenant));
  expectOneEntryEach(load, entries);
  const missing = [
    ...(await missingObjects(stack, tenant, load)),
    ...missingRuns(load, await executionsOf(stack, tenant)),
  ];
  await expectSameExecutionByKey(stack, tenant, load, entries);

  await finishRuns(stack, tenant);
  await relay(stack);
  const executions = await executionsOf(stack, tenant);
  const ledger = await ledgerOf(stack, tenant);
  const doubled = doubleCharges(ledger.rows);
  expectLedgerConsistent(ledger);
  const charged = executions.reduce((sum, { charge }) => sum + Math.round((charge as number) * 1e6), 0);
  const reservationsLeft = ledger.account.openReservations;
  expect({
    missing,
    doubled,
    reservationsLeft,
    reserved: ledger.account.reservedMicros,
    spent: ledger.account.spentMicros,
  }).toEqual({ missing: [], doubled: [], reservationsLeft: 0, reserved: 0, spent: charged });
  const events = await expectOneEventEach(stack, tenant, load, executions, ledger.rows.length);
  await expectBytesCounted(stack, tenant);
  const count = (wanted: Outcome): number => load.sent.filter(({ outcome }) => outcome === wanted).length;
  const slowestMs = Math.max(...load.sent.map(({ tookMs }) => tookMs));
  return {
    acknowledged: count('acknowledged'),
    rejected: count('rejected'),
    unknown: count('unknown'),
    missing: missing.length,
    charged: charged / 1e6,
    doubled: doubled.length,
    reservationsLeft,
    events,
    slowestMs,
  };
}

export const printCounts = (
  what: string,
  { acknowledged, rejected, unknown, missing, charged, doubled, reservationsLeft, events, slowestMs }: Counts,
): void =>
  void process.stdout.write(
    `${what}: ${acknowledged} acknowledged, ${rejected} rejected, ${unknown} unknown, ${missing} missing, ` +
      `${charged} credits charged, ${doubled} doubled, ${reservationsLeft} reservations left, ${events} events, ` +
      `slowest reply after ${Math.round(slowestMs)} ms\n`,
  );

/** Runs reaper and sweeper until every run has ended and is settled; if that never happens, the expectations fail. */
async function finishRuns(stack: RunningStack, tenant: TenantRef): Promise<void> {
  const giveUpAt = Date.now() + GIVE_UP_MS;
  await eventually(async () => {
    await runJob(stack, 'agents', 'reaper');
    await runJob(stack, 'credits', 'sweeper');
    const executions = await executionsOf(stack, tenant);
    const { account } = await ledgerOf(stack, tenant);
    const charged = executions.reduce((sum, { charge }) => sum + Math.round((charge ?? 0) * 1e6), 0);
    const isFinished =
      account.openReservations === 0 &&
      account.spentMicros === charged &&
      !executions.some(({ status }) => ACTIVE.includes(status));
    return isFinished || Date.now() >= giveUpAt;
  });
}

/** On a busy machine a round of a job may run out of time; the next round continues its work. */
const runJob = (stack: RunningStack, service: ProcessName, name: string): ReturnType<RunningStack['runJob']> =>
  retryWhileUnavailable(() => stack.runJob(service, name), ['UNAVAILABLE', 'OUTCOME_UNKNOWN']);

/**
 * Runs the relays until a round finds nothing left: a round that loses its lease stops early, and no round runs while
 * a dead process still holds the lease. Then waits for the audit consumer.
 */
export async function relay(stack: RunningStack): Promise<void> {
  const giveUpAt = Date.now() + GIVE_UP_MS;
  for (const service of RELAYS)
    await eventually(async () => {
      const { ran, count } = await runJob(stack, service, 'relay');
      return (ran && count === 0) || Date.now() >= giveUpAt;
    });
  await eventually(async () => (await isAuditConsumerCaughtUp(stack)) || Date.now() >= giveUpAt);
}

function entriesByRequest(entries: readonly AuditEntry[]): ReadonlyMap<string, AuditEntry[]> {
  return Map.groupBy(
    entries.filter(({ action }) => action !== 'request.refused'),
    ({ requestId }) => requestId,
  );
}

/** Acknowledged: one audit entry; rejected: none; unknown: one or none. */
function expectOneEntryEach({ sent }: Load, entriesOf: ReadonlyMap<string, AuditEntry[]>): void {
  const wrong = sent.filter(({ requestId, outcome }) => {
    const entries = entriesOf.get(requestId)?.length ?? 0;
    return outcome === 'acknowledged' ? entries !== 1 : entries > (outcome === 'unknown' ? 1 : 0);
  });
  expect(wrong.map(({ requestId, outcome, body }) => ({ outcome, body, entries: entriesOf.get(requestId) }))).toEqual(
    [],
  );
}

async function missingObjects(stack: RunningStack, tenant: TenantRef, { objects, typeId }: Load): Promise<unknown[]> {
  const { totals, items } = await objectsOf(stack, tenant, typeId);
  expect([...new Set(totals)]).toEqual([items.length]);
  const found = new Map(items.map((item) => [item.key, item]));
  expect(found.size).toBe(items.length);
  const known = new Set(objects.map(({ key }) => key));
  expect(items.filter(({ key }) => !known.has(key))).toEqual([]);
  return objects.filter(({ key, id, possible }) => {
    const item = found.get(key);
    const isPossible = possible.some((content) => JSON.stringify(content) === JSON.stringify(item?.content));
    return !isPossible || (item !== undefined && id !== undefined && item.id !== id);
  });
}

function missingRuns({ runs }: Load, executions: readonly Execution[]): unknown[] {
  const byId = new Map(executions.map((execution) => [execution.id, execution]));
  return runs.filter(({ outcome, status, body }) => {
    const execution = byId.get(body?.agentExecutionId);
    const ended = execution?.status === 'succeeded' && execution.charge === 1;
    if (outcome === 'acknowledged') return !ended;
    const lost = execution?.status === 'interrupted' && execution.charge === 0;
    // the reply named the execution: the platform lost the run, or the outcome is unknown (it ended or was withdrawn)
    return body?.agentExecutionId !== undefined && !lost && !(status === 504 && (ended || execution === undefined));
  });
}

/** A repeat gets the result of the run that ended under the key; if that run was lost or rejected, it runs again. */
async function expectSameExecutionByKey(
  stack: RunningStack,
  tenant: TenantRef,
  { runs }: Load,
  entriesOf: ReadonlyMap<string, AuditEntry[]>,
): Promise<void> {
  let entries = entriesOf;
  for (const run of runs)
    for (const giveUpAt = Date.now() + GIVE_UP_MS; run.key !== undefined;) {
      const { requestId, outcome, body } = { ...run, ...run.rerun };
      const { again, repeatId } = await repeatRun(stack, tenant, run, run.key);
      const entry = entries.get(requestId)?.[0];
      const earlier = entry?.outcome === 'success' ? entry.targetId : undefined;
      if (again.status === 504 && Date.now() < giveUpAt) {
        // a busy engine lost the reply of the repeat, too: the next one must get what this one came to
        if (earlier === undefined) run.rerun = { requestId: repeatId, outcome: 'unknown', body: again.body };
        await finishRuns(stack, tenant);
        await relay(stack);
        entries = entriesByRequest(await auditTrailOf(stack, tenant));
        continue;
      }
      expect({ status: again.status, replayed: again.headers.get('idempotency-replayed') }).toEqual({
        status: 200,
        replayed: earlier === undefined ? null : 'true',
      });
      if (earlier === undefined) run.rerun = { requestId: repeatId, outcome: 'acknowledged', body: again.body };
      else expect(again.body.agentExecutionId).toBe(earlier);
      if (outcome === 'acknowledged') expect(again.body).toEqual(body);
      break;
    }
}

const repeatRun = (
  { baseUrl }: RunningStack,
  { token }: TenantRef,
  { agentName, args }: SentRun,
  key: string,
): Promise<{ again: Reply; repeatId: string }> =>
  retryWhileUnavailable(async () => {
    const repeatId = newId();
    const again = await request(baseUrl, 'POST', '/api/agent/run', {
      token,
      body: { agentName, args },
      headers: { 'Idempotency-Key': key, 'X-Request-Id': repeatId },
    });
    if (again.status === 503) throw new ServiceError('UNAVAILABLE', again.text);
    return { again, repeatId };
  });

/** Ids of reservations with more than one charge, or more than one end. */
const doubleCharges = (rows: readonly { kind: string; id: string }[]): string[] =>
  [CHARGING, ENDING].flatMap((kinds) =>
    [
      ...Map.groupBy(
        rows.filter(({ kind }) => kinds.includes(kind)),
        ({ id }) => id,
      ),
    ]
      .filter(([, same]) => same.length > 1)
      .map(([id]) => id),
  );

/**
 * Expects one event for every acknowledged change, every ended run and every ledger row, and one entry in the audit
 * trail for every audit event.
 * @returns the number of events
 */
async function expectOneEventEach(
  stack: RunningStack,
  tenant: TenantRef,
  { objects }: Load,
  executions: readonly Execution[],
  rows: number,
): Promise<number> {
  const { events, auditCaughtUp, deadLetters } = await eventsOf(stack, tenant);
  expect({ auditCaughtUp, deadLetters }).toEqual({ auditCaughtUp: true, deadLetters: 0 });
  const changes = new Set(events['memory.change.v1'].map(({ type, subject }) => `${type} ${subject}`));
  expect(
    objects
      .flatMap(({ id, acknowledged }) => acknowledged.map((verb) => `memory.object.${verb}.v1 objects/${id}`))
      .filter((change) => !changes.has(change)),
  ).toEqual([]);
  expect(changes.size).toBe(events['memory.change.v1'].length);

  const finished = events['agent.execution.v1'].filter(({ type }) => type === 'agent.execution.finished.v1');
  expect(finished.map(({ subject }) => subject).sort()).toEqual(executions.map(({ id }) => `executions/${id}`).sort());
  expect(events['credits.ledger.v1'].map(({ sequence }) => sequence)).toEqual(
    Array.from({ length: rows }, (_, index) => index + 1),
  );

  const entries = await auditTrailOf(stack, tenant);
  expect(entries.map(({ id }) => id).sort()).toEqual(idsOf(events['audit.v1']));
  await expectWholeTrail(stack, tenant, entries.length);
  return Object.values(events).reduce((sum, { length }) => sum + length, 0);
}

const idsOf = (events: readonly CloudEvent[]): string[] => events.map(({ id }) => id).sort();
