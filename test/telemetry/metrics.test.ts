import { eventText } from 'platform/events/bus.ts';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { DatabaseSync } from 'node:sqlite';
import { PROCESSES, type ProcessName } from 'platform/core/processes.ts';
import { openSqliteBus } from 'platform/events/sqlite/bus.ts';
import { eventually } from 'platform/service/test-end.ts';
import { temporaryFolder } from 'platform/service/testing.ts';
import { eventOf } from '../../platform/test/events/event-of.ts';
import { DECLARED } from '../support/declared-metrics.ts';
import { request } from '../support/request.ts';
import { metricsSettings, scrape, sumOf, type Series } from '../support/scrape.ts';
import { NO_ENGINES } from '../support/shared-engines.ts';
import { startStack, type Stack } from '../support/stack.ts';
import { expressionAgent, type Tenant } from '../support/tenant.ts';

const NAMES = Object.keys(PROCESSES) as ProcessName[];
const ENDLESS = '( $again := function($n) { $again($n + 1) }; $again(0) )';
const AGENTS = [
  expressionAgent('hello', '{ "hello": $ }'),
  expressionAgent('broken', '{ "a": $number("sesame") }'),
  expressionAgent('endless', ENDLESS, { limits: { wallMs: 60_000, maxSteps: 1_000_000_000 } }),
];
const TYPE = { type: 'note', jsonSchema: { type: 'object' } };

/** Makes each process write which packages it has loaded, when it ends. */
function notingPackages(folder: string): Record<string, string> {
  const preload = pathToFileURL(join(import.meta.dirname, 'note-packages.ts'));
  preload.searchParams.set('folder', folder);
  return { NODE_OPTIONS: `--import=${preload.href}` };
}
const packages = temporaryFolder();
const packagesOf = (pid: number): string[] =>
  JSON.parse(readFileSync(join(packages.path, String(pid)), 'utf8')) as string[];

let stack: Stack;
let at: Readonly<Record<ProcessName, string>>;
let tenant: Tenant;
beforeAll(async () => {
  const settings = await metricsSettings();
  at = settings.at;
  const env = { ...NO_ENGINES, ...settings.env, ...notingPackages(packages.path), RUNNERS: '1', RUNNERS_MAX: '1' };
  stack = await startStack({ env, replicas: 1 });
  tenant = await stack.tenant({ credits: 100, agents: AGENTS });
});
afterAll(async () => {
  await stack.stop();
  packages.remove();
});

const run = (agentName: string, of = tenant) => of.request('POST', '/api/agent/run', { agentName, args: {} });
/** What was added to each counter of a program by the work. */
async function added(program: ProcessName, work: () => Promise<unknown>) {
  const before = await scrape(at[program]);
  await work();
  const after = await scrape(at[program]);
  return (name: string, labels: Record<string, string> = {}): number =>
    (sumOf(after, name, labels) ?? 0) - (sumOf(before, name, labels) ?? 0);
}
const times = async (count: number, send: () => Promise<unknown>): Promise<void> => {
  for (let n = 0; n < count; n++) await send();
};

describe('the metrics of the product', () => {
  it('count each request once, by route, verb, status and code', async () => {
    const { baseUrl } = stack;
    const since = await added('gateway', async () => {
      await times(7, () => tenant.request('GET', '/api/memory/types'));
      await times(3, () => request(baseUrl, 'GET', '/api/memory/types', { token: 'aks_wrong' }));
      await times(2, () => tenant.request('GET', `/api/memory/objects/${tenant.organizationId}`));
      await times(1, () => tenant.request('PUT', '/api/memory/types'));
      await times(4, () => tenant.request('GET', `/no/such/path/${tenant.organizationId}`));
    });
    const requests = (labels: Record<string, string>) => since('agentmemory_http_requests_total', labels);
    const types = { route: '/api/memory/types', verb: 'GET' };
    expect(requests({ ...types, status: '200', code: 'ok' })).toBe(7);
    expect(requests({ ...types, status: '401', code: 'unauthenticated' })).toBe(3);
    expect(requests({ route: '/api/memory/objects/{id}', verb: 'GET', status: '404', code: 'not_found' })).toBe(2);
    expect(requests({ route: '/api/memory/types', verb: 'PUT', status: '405', code: 'method_not_allowed' })).toBe(1);
    expect(requests({ route: 'none', verb: 'GET', status: '404', code: 'not_found' })).toBe(4);
    expect(requests({})).toBe(17);
    expect(since('agentmemory_http_request_seconds_count', types)).toBe(10);
    expect(since('agentmemory_http_request_seconds_bucket', { ...types, le: '+Inf' })).toBe(10);
    expect(since('agentmemory_authentication_seconds_count')).toBe(9);
  });

  it('count each call of a service once, by method and code', async () => {
    const since = await added('memory', async () => {
      await times(5, () => tenant.request('GET', '/api/memory/types'));
      await times(2, () => tenant.request('GET', `/api/memory/objects/${tenant.organizationId}`));
    });
    const of = (method: string, code: string) => ({ service: 'memory.v1.MemoryService', method, code });
    expect(since('agentmemory_rpc_calls_total', of('ListMemoryTypes', 'ok'))).toBe(5);
    expect(since('agentmemory_rpc_calls_total', of('GetMemoryObject', 'not_found'))).toBe(2);
    expect(since('agentmemory_rpc_call_seconds_count', { method: 'ListMemoryTypes' })).toBe(5);
  });

  it('count runs by runtime and outcome, and the credits that they hold', async () => {
    const credits = await scrape(at.credits);
    const since = await added('agents', async () => {
      await times(3, () => run('hello'));
      await times(2, () => run('broken'));
    });
    const expression = { runtime: 'expression' };
    expect(since('agentmemory_runs_total', { ...expression, outcome: 'succeeded' })).toBe(3);
    expect(since('agentmemory_runs_total', { ...expression, outcome: 'failed' })).toBe(2);
    expect(since('agentmemory_runs_total')).toBe(5);
    expect(since('agentmemory_run_seconds_count', expression)).toBe(5);
    const held = (series: Series, name: string, labels: Record<string, string>) => sumOf(series, name, labels) ?? 0;
    const now = await scrape(at.credits);
    for (const [name, labels, count] of [
      ['agentmemory_reservations_total', { outcome: 'reserved' }, 5],
      ['agentmemory_reservations_ended_total', { state: 'settled' }, 5],
    ] as const)
      expect(held(now, name, labels) - held(credits, name, labels)).toBe(count);
  });

  it('tell which runs are in flight, wait, and keep a runner busy', async () => {
    const aborter = new AbortController();
    const { signal } = aborter;
    const body = { agentName: 'endless', args: {} };
    const sent = [1, 2, 3].map(() =>
      request(stack.baseUrl, 'POST', '/api/agent/run', { token: tenant.token, body, signal }).catch(() => undefined),
    );
    const busy = await eventually(async () => {
      const series = await scrape(at.agents);
      return sumOf(series, 'agentmemory_runs_in_flight', { runtime: 'expression' }) === 3 && series;
    });
    expect(sumOf(busy, 'agentmemory_runs_waiting', { place: 'runners' })).toBe(2);
    expect(sumOf(busy, 'agentmemory_runners', { state: 'busy' })).toBe(1);
    expect(sumOf(busy, 'agentmemory_rpc_calls_in_flight', { kind: 'unary' })).toBe(3);
    const cancelled = sumOf(busy, 'agentmemory_runs_total', { outcome: 'cancelled' }) ?? 0;
    aborter.abort();
    await Promise.all(sent);
    await eventually(async () => sumOf(await scrape(at.agents), 'agentmemory_runs_in_flight') === 0);
    expect(sumOf(await scrape(at.agents), 'agentmemory_runs_total', { outcome: 'cancelled' })).toBe(cancelled + 3);
    expect(sumOf(await scrape(at.gateway), 'agentmemory_http_requests_total', { code: 'client_gone' })).toBe(3);
  });

  it('count what is denied: credits that are missing, and the reason', async () => {
    const poor = await stack.tenant({ credits: 0, agents: AGENTS });
    const credits = await scrape(at.credits);
    const since = await added('gateway', () => run('hello', poor));
    expect(since('agentmemory_http_requests_total', { status: '402', code: 'insufficient_credits' })).toBe(1);
    const refused = { outcome: 'insufficient' };
    expect(sumOf(await scrape(at.credits), 'agentmemory_reservations_total', refused)).toBe(
      (sumOf(credits, 'agentmemory_reservations_total', refused) ?? 0) + 1,
    );
    expect(
      sumOf(await scrape(at.agents), 'agentmemory_rpc_calls_total', {
        method: 'RunAgent',
        code: 'insufficient_credits',
      }),
    ).toBe(1);
  });

  it('tell how long events have waited while the bus takes none, and that none waits afterwards', async () => {
    await tenant.request('POST', '/api/memory/types', TYPE);
    await eventually(async () => sumOf(await scrape(at.memory), 'agentmemory_outbox_rows') === 0);
    const file = new DatabaseSync(join(stack.folder, 'events.db'));
    file.exec('BEGIN IMMEDIATE');
    await tenant.request('POST', '/api/memory/objects', { type: 'note', key: 'one', content: {} });
    const waiting = await eventually(async () => {
      const series = await scrape(at.memory);
      return (sumOf(series, 'agentmemory_outbox_age_seconds') ?? 0) > 0.2 && series;
    });
    expect(sumOf(waiting, 'agentmemory_outbox_rows')).toBe(2);
    file.exec('ROLLBACK');
    file.close();
    await eventually(async () => {
      const series = await scrape(at.memory);
      return sumOf(series, 'agentmemory_outbox_rows') === 0 && sumOf(series, 'agentmemory_outbox_age_seconds') === 0;
    });
    await eventually(async () => sumOf(await scrape(at.auth), 'agentmemory_consumer_lag_events') === 0);
  });

  it('tell of dead letters', async () => {
    expect(sumOf(await scrape(at.auth), 'agentmemory_dead_letters')).toBe(0);
    const bus = await openSqliteBus(join(stack.folder, 'events.db'));
    await bus.publish('audit.v1', [{ ...eventOf(tenant.organizationId, 1), type: 'no.audit.entry' }].map(eventText));
    await eventually(
      async () => sumOf(await scrape(at.auth), 'agentmemory_dead_letters', { group: 'auth-audit' }) === 1,
    );
    await bus.close();
  });

  it('tell of the jobs, the engines, the certificate and the process itself', async () => {
    for (const name of NAMES) {
      const series = await scrape(at[name]);
      const value = (metric: string, labels = {}) => sumOf(series, metric, { program: name, ...labels });
      expect(value('agentmemory_certificate_expiry_timestamp_seconds')).toBeGreaterThan(Date.now() / 1e3);
      expect(value('process_cpu_seconds_total')).toBeGreaterThan(0);
      expect(value('process_resident_memory_bytes')).toBeGreaterThan(1e7);
      expect(value('agentmemory_event_loop_delay_seconds', { percentile: '99' })).toBeGreaterThanOrEqual(0);
      expect(value('agentmemory_engine_up', { role: name === 'gateway' ? 'rates' : 'store' })).toBe(1);
      if (name === 'gateway') continue;
      expect(value('agentmemory_job_rounds_total', { job: 'relay', outcome: 'succeeded' })).toBeGreaterThan(0);
      expect(value('agentmemory_data_disk_free_bytes')).toBeLessThanOrEqual(value('agentmemory_data_disk_bytes')!);
    }
    expect(sumOf(await scrape(at.gateway), 'agentmemory_client_streams', { service: 'memory' })).toBe(1);
  });

  it('are all declared, and declare all that they tell', async () => {
    for (const name of NAMES) {
      const text = await (await fetch(`http://${at[name]}/metrics`)).text();
      const told = [...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, metric, type]) => `${metric} ${type}`);
      expect(told.sort()).toEqual(DECLARED[name]!.map((metric) => `${metric.name} ${metric.type}`).sort());
    }
  });

  it('have no more series for more organizations, agents and objects, and none of their names', async () => {
    const names: string[] = [];
    async function drive(tenants: number): Promise<void> {
      for (let n = 0; n < tenants; n++) {
        const agent = `agent-${names.length}`;
        const one = await stack.tenant({ credits: 10, agents: [expressionAgent(agent, '{ "hello": $ }')] });
        names.push(agent, one.organizationId, one.name, one.administrator, one.token);
        expect((await run(agent, one)).status).toBe(200);
        expect((await one.request('POST', '/api/memory/types', { ...TYPE, type: `type-${n}` })).status).toBe(201);
        const { body } = await one.request('POST', '/api/memory/objects', {
          type: `type-${n}`,
          key: 'one',
          content: { n },
        });
        names.push(body.id as string);
        expect((await one.request('GET', `/api/memory/objects/${body.id}`)).status).toBe(200);
        expect((await one.request('GET', `/api/memory/objects?type=type-${n}`)).status).toBe(200);
        expect((await one.request('GET', `/api/agent/executions/${one.organizationId}`)).status).toBe(404);
        await request(stack.baseUrl, 'GET', `/${agent}`, { token: one.token });
      }
    }
    const allSeries = async (): Promise<string[]> => {
      const scrapes = await Promise.all(NAMES.map((name) => scrape(at[name])));
      // which jobs have had a round, which code a late call got, and what agents asks each second depend on the time
      const steady =
        /^agentmemory_(http|rpc_call_seconds|run|reservations|authentication|events)(?!.*FindStoppedActors)/;
      return scrapes.flatMap((series) => [...series.keys()].filter((key) => steady.test(key))).sort();
    };
    await drive(2);
    const before = await allSeries();
    await drive(20);
    expect(await allSeries()).toEqual(before);
    const everything = (await Promise.all(NAMES.map((name) => scrape(at[name])))).flatMap((series) => [
      ...series.keys(),
    ]);
    expect(everything.filter((key) => names.some((name) => key.includes(name)))).toEqual([]);
    expect(everything.length).toBeLessThan(3_000);
  });
});

describe('a program without METRICS_LISTEN', () => {
  it('opens no port for them and imports nothing, unlike one with it', async () => {
    const off = await startStack({ env: { ...NO_ENGINES, ...notingPackages(packages.path) }, replicas: 1 });
    const pids = { on: NAMES.map(stack.pidOf), off: NAMES.map(off.pidOf) };
    expect(pids.on.map(portsOf)).toEqual([2, 2, 2, 2, 2]);
    expect(pids.off.map(portsOf)).toEqual([1, 1, 1, 1, 1]);
    await off.stop();
    await stack.stop();
    const loads = (pid: number) => packagesOf(pid).includes('@prometheus-io/client');
    expect(pids.off.map(loads)).toEqual([false, false, false, false, false]);
    expect(pids.on.map(loads)).toEqual([true, true, true, true, true]);
  });
});

/** Sockets on which the process listens. */
function portsOf(pid: number): number {
  const own = readdirSync(`/proc/${pid}/fd`).map((fd) => linkOf(`/proc/${pid}/fd/${fd}`));
  const listening = readFileSync(`/proc/${pid}/net/tcp`, 'utf8')
    .split('\n')
    .map((line) => line.trim().split(/\s+/))
    .filter(([, , , state]) => state === '0A')
    .map((fields) => `socket:[${fields[9]}]`);
  return listening.filter((socket) => own.includes(socket)).length;
}

/** Undefined for a descriptor that was closed meanwhile. */
function linkOf(path: string): string | undefined {
  try {
    return readlinkSync(path);
  } catch {
    return undefined;
  }
}
