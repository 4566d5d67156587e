import { SCENARIOS } from '../load/scenarios.ts';
import type { Settings } from '../settings.ts';
import { startBaseline } from './baseline.ts';
import { realEngines } from './engines.ts';
import { storedBytes } from './file-records.ts';
import { startProduct } from './product.ts';
import { startStock } from './stock.ts';
import type { System } from './system.ts';

/**
 * Starts baseline, stock express-gateway and product, and the product on real servers if they are named; stops all.
 * @param work gets the systems, and the figures of the product's start
 */
export async function withSystems(
  { objects }: Settings,
  scenarios: readonly string[],
  work: (systems: readonly System[], figures: Record<string, number>) => Promise<void>,
): Promise<void> {
  const engines = await realEngines();
  const organizations = Math.max(0, ...scenarios.map((name) => SCENARIOS[name]!.organizations).filter((n) => n > 1));
  const systems: System[] = [];
  const started = <S extends System>(system: S): S => {
    systems.push(system);
    return system;
  };
  try {
    const baseline = started(await startBaseline(objects));
    started(await startStock(baseline));
    const product = started(await startProduct({ name: 'product', objects, organizations, replicas: 1 }));
    const bytes = Object.values(storedBytes(product.stack.folder)).reduce((sum, size) => sum + size, 0);
    const figures = {
      'product pss at start': product.pssAtStartMb,
      'product bytes per object': bytes / (organizations > 0 ? 2 * objects : objects),
    };
    if (engines)
      started(
        await startProduct({
          name: engines.name,
          objects,
          organizations,
          env: { TEST_ENGINES: '1' },
          replicas: 1,
          servers: engines.pids,
        }),
      );
    await work(systems, figures);
  } finally {
    for (const system of systems.reverse()) await system.stop();
  }
}
