import { SCENARIOS } from '../load/scenarios.ts';
import { noFindings, type Findings } from '../measure/report.ts';
import type { Settings } from '../settings.ts';
import { realEngines } from '../systems/engines.ts';
import { startProduct, type Product } from '../systems/product.ts';
import { compare } from './compare.ts';

/** Two of every process beside one, on the same servers. The servers' own CPU time is not counted. */
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
    return await compare(products, [SCENARIOS.get!, SCENARIOS.create!], settings);
  } finally {
    for (const product of products) await product.stop();
  }
}
