import { EventEmitter } from 'node:events';
import { countRequests, HTTP_METRICS } from '../../gateway/src/http/metrics.ts';
import { makeLog } from '../../platform/src/core/log.ts';
import { countCalls, SERVICE_METRICS } from '../../platform/src/service/metrics.ts';
import { openMetrics } from '../../platform/src/telemetry/metrics.ts';
import { median } from '../load/latencies.ts';
import { SCENARIOS, type Scenario } from '../load/scenarios.ts';
import { noFindings, printRounds, printTable, type Findings } from '../measure/report.ts';
import { totalCpu, warmUp, type Round } from '../measure/round.ts';
import type { Settings } from '../settings.ts';
import { startProduct, type Product } from '../systems/product.ts';
import { metricsSettings } from '../../test/support/scrape.ts';
import { interleaved } from './compare.ts';

const WITHOUT = 'without metrics';
const WITH = 'with metrics';
/** As often as Prometheus usually asks. */
const SCRAPE_MS = 15_000;

/** The product with metrics, which are scraped, beside the product without. */
export async function measureMetrics(settings: Settings): Promise<Findings> {
  await measureTelling();
  const findings = noFindings();
  const { env, at } = await metricsSettings();
  const products: Product[] = [];
  const scrapes: { bytes: number; tookMs: number }[] = [];
  const scrapeAll = async (): Promise<void> => {
    for (const address of Object.values(at)) {
      const askedAt = performance.now();
      const text = await (await fetch(`http://${address}/metrics`)).text();
      scrapes.push({ bytes: text.length, tookMs: performance.now() - askedAt });
    }
  };
  let timer: NodeJS.Timeout | undefined;
  try {
    for (const [name, own] of [
      [WITHOUT, {}],
      [WITH, env],
    ] as const)
      products.push(await startProduct({ name, objects: settings.objects, env: own, replicas: 1 }));
    timer = setInterval(() => void scrapeAll().catch(() => undefined), SCRAPE_MS);
    const rows: string[][] = [];
    for (const scenario of [SCENARIOS.get!, SCENARIOS.create!, SCENARIOS.run!])
      rows.push(await rowOf(scenario, products, settings, findings));
    process.stdout.write('\n');
    printTable(['CPU with metrics, of that without', 'median of the pairs', 'of all pairs'], rows);
    const largest = Math.max(...scrapes.map(({ bytes }) => bytes));
    const slowest = Math.max(...scrapes.map(({ tookMs }) => tookMs));
    process.stdout.write(
      `${scrapes.length} scrapes, at most ${largest} bytes and ${slowest.toFixed(0)} ms under load\n`,
    );
    return findings;
  } finally {
    clearInterval(timer);
    for (const product of products) await product.stop();
  }
}

const CALLS = 200_000;

/** CPU microseconds that telling takes of a request by itself, which the noise of the rounds hides. */
async function measureTelling(): Promise<void> {
  const log = makeLog('bench', 'silent');
  const metrics = await openMetrics('bench', '127.0.0.1:0', [...new Set([...HTTP_METRICS, ...SERVICE_METRICS])], log);
  const onCall = countCalls(metrics)!;
  const requests = countRequests(metrics)!;
  const call = { path: '/memory.v1.MemoryService/GetMemoryObject' } as Parameters<typeof onCall>[0];
  const exchange = { template: '/api/memory/objects/{id}' };
  const req = { method: 'GET', exchange } as Parameters<typeof requests.began>[0];
  const microsOf = (work: () => void): number => {
    const before = process.cpuUsage();
    for (let n = 0; n < CALLS; n++) work();
    const { user, system } = process.cpuUsage(before);
    return (user + system) / CALLS;
  };
  const replied = (tell: boolean) => (): void => {
    const res = Object.assign(new EventEmitter(), { writableFinished: true, statusCode: 200 });
    if (tell) requests.began(req, res as never);
    res.emit('close');
  };
  const rounds = Array.from({ length: 5 }, () => ({
    call: microsOf(() => onCall(call)('ok')),
    request: microsOf(replied(true)) - microsOf(replied(false)),
    authentication: microsOf(() => requests.authenticated(1)),
  }));
  const of = (part: keyof (typeof rounds)[number]): number => median(rounds.map((round) => round[part]));
  await metrics.close();
  const get = of('request') + of('authentication') + 2 * of('call');
  process.stdout.write(
    `telling takes ${of('request').toFixed(1)} µs of a request, ${of('authentication').toFixed(1)} of its ` +
      `authentication and ${of('call').toFixed(1)} of each call: ${get.toFixed(1)} of a get\n`,
  );
}

/** Each round is compared with the one beside it, because other work on the machine changes slowly. */
async function rowOf(
  scenario: Scenario,
  products: readonly Product[],
  settings: Settings,
  findings: Findings,
): Promise<string[]> {
  for (const product of products) findings.failures.push(...(await warmUp(product, scenario, settings)));
  const rounds = await interleaved(products, settings, scenario);
  findings.failures.push(...rounds.flatMap(({ failures }) => failures));
  printRounds(scenario.title, rounds);
  const cpuOf = (system: string): number[] => rounds.filter((round: Round) => round.system === system).map(totalCpu);
  const without = cpuOf(WITHOUT);
  const ratios = cpuOf(WITH).map((cpu, index) => cpu / without[index]!);
  findings.figures[`metrics ${scenario.name}`] = median(ratios);
  return [scenario.title, median(ratios).toFixed(3), ratios.map((ratio) => ratio.toFixed(2)).join(' ')];
}
