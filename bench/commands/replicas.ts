import { SCENARIOS } from '../load/scenarios.ts';
import { figure, noFindings, printTable, type Findings } from '../measure/report.ts';
import { idleCpuOf } from '../measure/round.ts';
import type { Settings } from '../settings.ts';
import { realEngines } from '../systems/engines.ts';
import { startProduct, type Product } from '../systems/product.ts';
import { compare } from './compare.ts';

const IDLE_SECONDS = 30;

/**
 * Two of every process beside one, on the same servers. The servers' own CPU time is not counted. At the few requests
 * that the servers answer, what an idle process does would be a large part of each, so it is printed by itself.
 */
export async function measureReplicas(settings: Settings): Promise<Findings> {
  if (!(await realEngines())) {
    process.stdout.write(
      '\nreplicas: needs MONGODB_URL, REDIS_URL and KAFKA_BROKERS (npm run engines -- up): not measured\n',
    );
    return noFindings();
  }
  const { objects } = settings;
  const env = { TEST_ENGINES: '1' };
  const products: Product[] = [];
  try {
    products.push(await startProduct({ name: 'one replica', objects, env, replicas: 1 }));
    products.push(await startProduct({ name: 'two replicas', objects, env }));
    const measured = await Promise.all(
      products.map(async (product) => ({ ...product, idleCpu: await idleCpuOf(product, IDLE_SECONDS) })),
    );
    process.stdout.write('\n');
    printTable(['CPU ms in a second without requests', ...PROCESSES], measured.map(idleRow));
    return await compare(measured, [SCENARIOS.get!, SCENARIOS.create!], settings);
  } finally {
    for (const product of products) await product.stop();
  }
}

const PROCESSES = ['gateway', 'auth', 'agents', 'memory', 'credits'] as const;
const idleRow = ({ name, idleCpu }: Product & { idleCpu: Record<string, number> }): string[] => [
  name,
  ...PROCESSES.map((process) => figure(idleCpu[process]! / 1000)),
];
