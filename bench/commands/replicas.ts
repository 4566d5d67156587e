import { after, countOf, runClosedLoop } from '../load/closed-loop.ts';
import { runFixedRate } from '../load/fixed-rate.ts';
import { SCENARIOS, type Scenario } from '../load/scenarios.ts';
import { untilDrained } from '../measure/drain.ts';
import { addFindings, figure, noFindings, printTable, type Findings } from '../measure/report.ts';
import { idleCpuOf, measureRound, warmUp } from '../measure/round.ts';
import type { Settings } from '../settings.ts';
import { realEngines } from '../systems/engines.ts';
import { startProduct, type Product } from '../systems/product.ts';
import { targetOf, type System } from '../systems/system.ts';
import { compare } from './compare.ts';

const PROCESSES = ['gateway', 'auth', 'agents', 'memory', 'credits'] as const;
const IDLE_SECONDS = 30;
/** So low that the servers, which all replicas share, can also answer twice as much. */
const SHARE_OF_CAPACITY = 0.3;

/**
 * Compares two replicas of every process with one, on the same servers, at a fixed rate for each replica and with two
 * that share the rate of one. The CPU time of the servers is not counted; that of idle processes is, and is also
 * printed.
 */
export async function measureReplicas(settings: Settings): Promise<Findings> {
  const findings = noFindings();
  if (!(await realEngines())) {
    process.stdout.write(
      '\nreplicas: needs MONGODB_URL, REDIS_URL and KAFKA_BROKERS (npm run engines -- up): not measured\n',
    );
    return findings;
  }
  const { objects } = settings;
  const env = { TEST_ENGINES: '1' };
  const products: Product[] = [];
  try {
    products.push(await startProduct({ name: 'one replica', objects, env, replicas: 1 }));
    products.push(await startProduct({ name: 'two replicas', objects, env }));
    const [one, two] = products as [Product, Product];
    const idle = await Promise.all(products.map(idleRow));
    process.stdout.write('\n');
    printTable(['CPU ms in a second without requests', ...PROCESSES, 'all'], idle);
    const sharing = { ...two, name: 'two replicas that share the load of one' };
    for (const scenario of [SCENARIOS.get!, SCENARIOS.create!]) {
      const { capacity, failures } = await capacityOf(one, scenario, settings);
      findings.failures.push(...failures);
      const rate = SHARE_OF_CAPACITY * capacity;
      const load = `${figure(rate, 0)}/s for one replica`;
      const roundOf = (system: System) =>
        measureRound(system, () =>
          runFixedRate(targetOf(system, scenario), system === two ? 2 * rate : rate, settings.seconds),
        );
      addFindings(findings, await compare([one, two, sharing], [scenario], settings, { roundOf, load }));
    }
    return findings;
  } finally {
    for (const product of products) await product.stop();
  }
}

async function idleRow(product: Product): Promise<string[]> {
  const idle = await idleCpuOf(product, IDLE_SECONDS);
  const ofProcesses = PROCESSES.map((process) => idle[process]! / 1000);
  return [product.name, ...[...ofProcesses, ofProcesses.reduce((sum, ms) => sum + ms, 0)].map((ms) => figure(ms))];
}

/** Requests/s of a closed loop. */
async function capacityOf(
  system: System,
  scenario: Scenario,
  settings: Settings,
): Promise<{ capacity: number; failures: string[] }> {
  const ofWarmUp = await warmUp(system, scenario, settings);
  const result = await runClosedLoop(targetOf(system, scenario), settings.connections, after(settings.seconds));
  await untilDrained(system.records!);
  return { capacity: countOf(result) / result.seconds, failures: [...ofWarmUp, ...result.failures] };
}
