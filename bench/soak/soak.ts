import { setTimeout as delay } from 'node:timers/promises';
import { startKafka, startMongo, startRedis, type PrivateServer } from '../../dev-servers/src/private-server.ts';
import { NAMES, openLastingRuns, PATIENT, type LastingRuns } from '../../test/support/lasting-runs.ts';
import { startLoad, type Load, type SentRequest } from '../../test/support/load.ts';
import { LOAD_AGENTS } from '../../test/support/load-settings.ts';
import { expectNothingLost, type Counts } from '../../test/support/nothing-lost.ts';
import { askOtherGateway } from '../../test/support/other-gateway.ts';
import { startStack, type Stack } from '../../test/support/stack.ts';
import { treePssOf } from '../measure/processes.ts';
import { figure, printTable } from '../measure/report.ts';

const CLIENTS = 4;
/** Requests that must succeed before and after each step: whoever waits for an engine goes on by then. */
const ACKNOWLEDGED = 20;
const MAX_GROWTH = 1.2;
/** What the kill of an engine leaves ends by itself before the comparison gives up. */
const LEASES = { RUN_LEASE_MS: '20000', RESERVATION_TTL_MS: '60000' };

export interface Verdict {
  goal: string;
  isMet: boolean;
  figure: string;
}

type Engines = Record<'MongoDB' | 'Redis' | 'Kafka', PrivateServer>;

/** What one part of the soak has shown, which ends with a comparison of all replies with the records. */
interface Part {
  killed: keyof Engines | undefined;
  sent: number;
  /** Requests that failed while no engine was down, and what was done then. */
  failed: (SentRequest & { during: string })[];
  failedInOutage: number;
  /** Undefined if something was lost. */
  counts: Counts | undefined;
  /** Of all processes when nothing was sent any more, in MB. */
  memoryMb: number;
}

interface Running {
  stack: Stack;
  lastingRuns: LastingRuns;
  engines: Engines;
}

/** Load for so long; in each part a rolling restart, and in two of them the kill of an engine. */
export async function soak(given: { minutes: number; requestsPerSecond: number }): Promise<Verdict[]> {
  const parts = Math.max(2, Math.round(given.minutes / 10));
  const kills = new Map<number, keyof Engines>([
    [Math.ceil(parts / 3), 'MongoDB'],
    [parts, 'Redis'],
  ]);
  const [MongoDB, Redis, Kafka] = await Promise.all([startMongo(), startRedis(), startKafka()]);
  const engines = { MongoDB, Redis, Kafka };
  const urls = { MONGODB_URL: MongoDB.url, REDIS_URL: Redis.url, KAFKA_BROKERS: Kafka.url };
  const stack = await startStack({ env: { TEST_ENGINES: '1', ...PATIENT, ...LEASES, ...urls } });
  const lastingRuns = await openLastingRuns(stack, ACKNOWLEDGED);
  const done: Part[] = [];
  try {
    printTable(['part', 'requests', 'failed', 'engine killed', 'failed meanwhile', 'lost', 'charged twice', 'events', 'slowest ms', 'memory MB (PSS)'], []); // prettier-ignore
    for (let part = 1; part <= parts; part++) {
      const lastsMs = (given.minutes * 60_000) / parts;
      const settings = { killed: kills.get(part), lastsMs, requestsPerSecond: given.requestsPerSecond };
      done.push(await onePart({ stack, lastingRuns, engines }, settings));
      process.stdout.write(`| ${rowOf(part, done.at(-1)!).join(' | ')} |\n`);
    }
  } finally {
    await lastingRuns.close();
    await stack.stop();
    for (const engine of Object.values(engines)) await engine.stop();
  }
  process.stdout.write('\n');
  const logged = stack.outputs().flatMap((output) => output.split('\n'));
  for (const { request, status, body, tookMs, during } of done.flatMap(({ failed }) => failed).slice(0, 20))
    process.stdout.write(
      `failed during ${during}: ${request} ${status} after ${figure(tookMs)} ms ${JSON.stringify(body)}\n` +
        logged.filter((line) => line.includes(body?.requestId ?? '-')).join('\n'),
    );
  return verdictsOf(done);
}

async function onePart(
  { stack, lastingRuns, engines }: Running,
  { killed, lastsMs, requestsPerSecond }: { killed: Part['killed']; lastsMs: number; requestsPerSecond: number },
): Promise<Part> {
  const until = performance.now() + lastsMs;
  const tenant = await stack.tenant({ credits: 1_000_000, agents: LOAD_AGENTS });
  await lastingRuns.prepare(tenant);
  const load = await startLoad({
    baseUrl: stack.baseUrls,
    token: tenant.token,
    clients: CLIENTS,
    ask: paced(askOtherGateway(stack.baseUrls), requestsPerSecond),
  });
  await load.untilAcknowledged(ACKNOWLEDGED);
  const steps: { what: string; until: number }[] = [];
  for (const name of NAMES)
    for (const replica of [0, 1]) {
      await lastingRuns.restart(load, name, replica);
      steps.push({ what: `the restart of ${name} ${replica + 1}`, until: load.sent.length });
    }
  const before = load.sent.length;
  const inOutage = killed ? await killEngine(engines[killed], load) : 0;
  const outage = load.sent.slice(before, before + inOutage);
  await delay(Math.max(0, until - performance.now()));
  await load.stop();
  const counts = await expectNothingLost(stack, tenant, load).catch((error: Error) => {
    process.stdout.write(`lost: ${error.message}\n`);
    return undefined;
  });
  const isFailed = ({ outcome }: SentRequest): boolean => outcome !== 'acknowledged';
  return {
    ...{ killed, counts, sent: load.sent.length },
    failed: load.sent.flatMap((each, i) => {
      const during = steps.find(({ until }) => i < until)?.what ?? 'no restart';
      return isFailed(each) && !outage.includes(each) ? [{ ...each, during }] : [];
    }),
    failedInOutage: outage.filter(isFailed).length,
    memoryMb: stack.launchers.reduce((sum, { pid }) => sum + treePssOf(pid as number), 0),
  };
}

/**
 * Kills the engine until a request of each client has failed, or for ten seconds.
 * @returns how many requests were answered from then on, until requests succeed again
 */
async function killEngine(engine: PrivateServer, load: Load): Promise<number> {
  const before = load.sent.length;
  const over = Promise.withResolvers<void>();
  void load.pauseDuring(over.promise);
  await engine.kill();
  await Promise.race([load.untilAllClientsWait(), delay(10_000)]);
  await engine.restart().finally(over.resolve);
  await load.untilAcknowledged(ACKNOWLEDGED);
  return load.sent.length - before;
}

/** Lets only so many requests begin in a second. */
function paced(ask: Parameters<typeof startLoad>[0]['ask'] & object, perSecond: number): typeof ask {
  let nextMs = performance.now();
  return async (...given) => {
    nextMs = Math.max(nextMs + 1_000 / perSecond, performance.now());
    await delay(nextMs - performance.now());
    return ask(...given);
  };
}

const rowOf = (part: number, { killed, sent, failed, failedInOutage, counts, memoryMb }: Part): string[] => [
  String(part),
  figure(sent, 0),
  String(failed.length),
  ...(killed ? [killed, String(failedInOutage)] : ['', '']),
  ...(counts
    ? [counts.missing, counts.doubled, counts.events, counts.slowestMs].map((count) => figure(count, 0))
    : ['yes', '', '', '']),
  figure(memoryMb, 0),
];

function verdictsOf(parts: readonly Part[]): Verdict[] {
  const growth = parts.at(-1)!.memoryMb / parts[0]!.memoryMb;
  const failed = parts.reduce((sum, part) => sum + part.failed.length, 0);
  const sent = parts.reduce((sum, part) => sum + part.sent, 0);
  const lossless = parts.filter(({ counts }) => counts).length;
  const killed = parts.filter((part) => part.killed).length;
  return [
    {
      goal: 'nothing is lost or charged twice',
      isMet: lossless === parts.length,
      figure: `${lossless} of ${parts.length} parts`,
    },
    {
      goal: 'restarts fail no request',
      isMet: failed === 0,
      figure: `${failed} of ${sent} failed, ${10 * parts.length} restarts`,
    },
    { goal: 'an engine was killed twice', isMet: killed === 2, figure: `${killed} kills` },
    { goal: `memory is flat, at most ${MAX_GROWTH} ×`, isMet: growth <= MAX_GROWTH, figure: `${figure(growth, 2)} ×` },
  ];
}
