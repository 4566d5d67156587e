import type { AuditEntry } from 'proto/auth/v1/auth.ts';
import { newId } from 'platform/core/ids.ts';
import type { CloudEvent } from 'platform/events/bus.ts';
import { ServiceError } from 'platform/core/errors.ts';
import type { ProcessName } from 'platform/core/processes.ts';
import { eventsOf, isAudited } from '../support/event-records.ts';
import {
  auditTrailOf,
  executionsOf,
  expectToAddUp,
  ledgerOf,
  objectsOf,
  retryWhileUnavailable,
  type Execution,
  type Of,
} from '../support/organization-records.ts';
import { request, type Stack } from '../support/stack.ts';
import type { Load, Outcome, SentRun } from './load.ts';

const ACTIVE = ['queued', 'running'];
const CHARGING = ['SETTLE', 'LATE_SETTLE'];
const ENDING = ['SETTLE', 'RELEASE', 'EXPIRE'];
const RELAYS = ['auth', 'agents', 'memory', 'credits'] as const;
const GIVE_UP_MS = 120_000;

export interface Counts {
  acknowledged: number;
  /** Answered with 503: nothing was done. */
  refused: number;
  /** Not answered, or with 504. */
  unknown: number;
  missing: number;
  charged: number;
  doubled: number;
  reservationsLeft: number;
  events: number;
  /** Of the request that waited longest for its answer. */
  slowestMs: number;
}

/** Lets the jobs finish what the kill left, then holds everything that the clients were told against what is there. */
export async function expectNothingLost(stack: Stack, of: Of, load: Load): Promise<Counts> {
  await finishRuns(stack, of);
  await relay(stack);
  const entries = entriesByRequest(await auditTrailOf(stack, of));
  expectOneEntryEach(load, entries);
  const missing = [...(await missingObjects(stack, of, load)), ...missingRuns(load, await executionsOf(stack, of))];
  await expectSameExecutionByKey(stack, of, load, entries);

  await finishRuns(stack, of);
  await relay(stack);
  const executions = await executionsOf(stack, of);
  const ledger = await ledgerOf(stack, of);
  const doubled = doubleCharges(ledger.rows);
  expectToAddUp(ledger);
  const charged = executions.reduce((sum, { charge }) => sum + Math.round((charge as number) * 1e6), 0);
  const reservationsLeft = ledger.account.openReservations;
  expect({
    missing,
    doubled,
    reservationsLeft,
    reserved: ledger.account.reservedMicros,
    spent: ledger.account.spentMicros,
  }).toEqual({ missing: [], doubled: [], reservationsLeft: 0, reserved: 0, spent: charged });
  const events = await expectOneEventEach(stack, of, load, executions, ledger.rows.length);
  const told = (outcome: Outcome): number => load.sent.filter((sent) => sent.outcome === outcome).length;
  const slowestMs = Math.max(...load.sent.map(({ tookMs }) => tookMs));
  return {
    acknowledged: told('done'),
    refused: told('refused'),
    unknown: told('unknown'),
    missing: missing.length,
    charged: charged / 1e6,
    doubled: doubled.length,
    reservationsLeft,
    events,
    slowestMs,
  };
}

export const say = (
  what: string,
  { acknowledged, refused, unknown, missing, charged, doubled, reservationsLeft, events, slowestMs }: Counts,
): void =>
  void process.stdout.write(
    `${what}: ${acknowledged} acknowledged, ${refused} refused, ${unknown} unknown, ${missing} missing, ${charged} credits charged, ${doubled} doubled, ${reservationsLeft} reservations left, ${events} events, slowest answer after ${Math.round(slowestMs)} ms\n`,
  );

/** Reaper and sweeper until every run has ended and is paid for; what has not by then is told by the expectations. */
async function finishRuns(stack: Stack, of: Of): Promise<void> {
  for (const giveUpAt = Date.now() + GIVE_UP_MS; Date.now() < giveUpAt;) {
    await runJob(stack, 'agents', 'reaper');
    await runJob(stack, 'credits', 'sweeper');
    const executions = await executionsOf(stack, of);
    const { account } = await ledgerOf(stack, of);
    const charged = executions.reduce((sum, { charge }) => sum + Math.round((charge ?? 0) * 1e6), 0);
    if (
      account.openReservations === 0 &&
      account.spentMicros === charged &&
      !executions.some(({ status }) => ACTIVE.includes(status))
    )
      return;
  }
}

/** A round that runs out of time on a busy machine is gone on with by the next. */
const runJob = (stack: Stack, service: ProcessName, name: string): ReturnType<Stack['runJob']> =>
  retryWhileUnavailable(() => stack.runJob(service, name), ['UNAVAILABLE', 'OUTCOME_UNKNOWN']);

/** Rounds until one finds nothing left: one that loses its lease stops before its end, and while nobody living holds it there is none. */
async function relay(stack: Stack): Promise<void> {
  const giveUpAt = Date.now() + GIVE_UP_MS;
  for (const service of RELAYS) {
    for (let left = true; left && Date.now() < giveUpAt;) {
      const { ran, count } = await runJob(stack, service, 'relay');
      left = !ran || count > 0;
    }
  }
  while (!(await isAudited(stack)) && Date.now() < giveUpAt) await new Promise((resolve) => setImmediate(resolve));
}

function entriesByRequest(entries: readonly AuditEntry[]): ReadonlyMap<string, AuditEntry[]> {
  return Map.groupBy(
    entries.filter(({ action }) => action !== 'request.refused'),
    ({ requestId }) => requestId,
  );
}

/** What was acknowledged was done once, what was refused was not done, what is unknown was done once or not. */
function expectOneEntryEach({ sent }: Load, told: ReadonlyMap<string, AuditEntry[]>): void {
  const wrong = sent.filter(({ requestId, outcome }) => {
    const entries = told.get(requestId)?.length ?? 0;
    return outcome === 'done' ? entries !== 1 : entries > (outcome === 'unknown' ? 1 : 0);
  });
  expect(wrong.map(({ requestId, outcome, body }) => ({ outcome, body, entries: told.get(requestId) }))).toEqual([]);
}

async function missingObjects(stack: Stack, of: Of, { objects, typeId }: Load): Promise<unknown[]> {
  const { totals, items } = await objectsOf(stack, of, typeId);
  expect([...new Set(totals)]).toEqual([items.length]);
  const found = new Map(items.map((item) => [item.key, item]));
  expect(found.size).toBe(items.length);
  const known = new Set(objects.map(({ key }) => key));
  expect(items.filter(({ key }) => !known.has(key))).toEqual([]);
  return objects.filter(({ key, id, possible }) => {
    const item = found.get(key);
    const asTold = possible.some((content) => JSON.stringify(content) === JSON.stringify(item?.content));
    return !asTold || (item !== undefined && id !== undefined && item.id !== id);
  });
}

function missingRuns({ runs }: Load, executions: readonly Execution[]): unknown[] {
  const byId = new Map(executions.map((execution) => [execution.id, execution]));
  return runs.filter(({ outcome, status, body }) => {
    const execution = byId.get(body?.agentExecutionId);
    const ended = execution?.status === 'succeeded' && execution.charge === 1;
    if (outcome === 'done') return !ended;
    const lost = execution?.status === 'interrupted' && execution.charge === 0;
    // told which run it is: that the platform lost it, or that it cannot be told whether it ended or was taken back
    return body?.agentExecutionId !== undefined && !lost && !(status === 504 && (ended || execution === undefined));
  });
}

/** A repeat answers as the run that held the key and ended; one that the platform lost, or refused, runs anew. */
async function expectSameExecutionByKey(
  { baseUrl }: Stack,
  { token }: Of,
  { runs }: Load,
  told: ReadonlyMap<string, AuditEntry[]>,
): Promise<void> {
  for (const run of runs.filter((candidate): candidate is SentRun & { key: string } => candidate.key !== undefined)) {
    const { agentName, args, key, requestId, outcome, body } = { ...run, ...run.anew };
    const { again, repeatId } = await retryWhileUnavailable(async () => {
      const id = newId();
      const reply = await request(baseUrl, 'POST', '/api/agent/run', {
        token,
        body: { agentName, args },
        headers: { 'Idempotency-Key': key, 'X-Request-Id': id },
      });
      if (reply.status === 503) throw new ServiceError('UNAVAILABLE', reply.text);
      return { again: reply, repeatId: id };
    });
    const entry = told.get(requestId)?.[0];
    const earlier = entry?.outcome === 'success' ? entry.targetId : undefined;
    expect({ status: again.status, replayed: again.headers.get('idempotency-replayed') }).toEqual({
      status: 200,
      replayed: earlier === undefined ? null : 'true',
    });
    if (earlier === undefined) run.anew = { requestId: repeatId, outcome: 'done', body: again.body };
    else expect(again.body.agentExecutionId).toBe(earlier);
    if (outcome === 'done') expect(again.body).toEqual(body);
  }
}

/** Reservations with more than one charge, or more than one end. */
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

/** Every acknowledged change, every ended run and every ledger row is one event; every audit event is one entry of the trail. */
async function expectOneEventEach(
  stack: Stack,
  of: Of,
  { objects }: Load,
  executions: readonly Execution[],
  rows: number,
): Promise<number> {
  const { events, audited, buried } = await eventsOf(stack, of);
  expect({ audited, buried }).toEqual({ audited: true, buried: 0 });
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

  const entries = await auditTrailOf(stack, of);
  expect(entries.map(({ id }) => id).sort()).toEqual(idsOf(events['audit.v1']));
  return Object.values(events).reduce((sum, { length }) => sum + length, 0);
}

const idsOf = (events: readonly CloudEvent[]): string[] => events.map(({ id }) => id).sort();
