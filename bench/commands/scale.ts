import { after, runClosedLoop, type LoadResult } from '../load/closed-loop.ts';
import { percentile } from '../load/latencies.ts';
import { MEMORY_SCENARIOS, SCENARIOS, type Scenario } from '../load/scenarios.ts';
import { addFindings, figure, noFindings, printTable, type Findings } from '../measure/report.ts';
import type { Settings } from '../settings.ts';
import { startProduct, type Product } from '../systems/product.ts';
import { targetOf } from '../systems/system.ts';
import { compare } from './compare.ts';

/** Connections of the neighbour of a dry run. */
const NEIGHBOURS = 4;
const ALONE_SECONDS = 5;

/** The product with few objects beside the product with many. */
export const measureScale = (settings: Settings): Promise<Findings> =>
  besideMany(settings, [SCENARIOS.get!, SCENARIOS.list!, SCENARIOS.create!]);

/** The same with all that memory does, and a dry run over the many objects. */
export const measureMemory = (settings: Settings): Promise<Findings> =>
  besideMany(settings, Object.values(MEMORY_SCENARIOS), measureDryRun);

async function besideMany(
  settings: Settings,
  scenarios: readonly Scenario[],
  further: (many: Product) => Promise<Findings> = async () => noFindings(),
): Promise<Findings> {
  const products: Product[] = [];
  const start = async (objects: number): Promise<Product> => {
    const product = await startProduct({ name: `${objects.toLocaleString('en')} objects`, objects, organizations: 1 });
    products.push(product);
    return product;
  };
  try {
    const few = await start(settings.objects);
    const many = await start(settings.manyObjects);
    const findings = await compare(products, scenarios, settings);
    // Goals name the sizes, and the names of ratios have both.
    for (const [figure, value] of Object.entries(findings.figures))
      findings.figures[figure.replace(many.name, 'many objects').replace(few.name, 'few objects')] = value;
    addFindings(findings, await further(many));
    return findings;
  } finally {
    for (const product of products) await product.stop();
  }
}

/** How long a dry run reads all objects of the type, and how a neighbour's gets are answered meanwhile. */
async function measureDryRun(product: Product): Promise<Findings> {
  const gets = (isOver: () => boolean): Promise<LoadResult> =>
    runClosedLoop(targetOf(product, SCENARIOS.tokens!), NEIGHBOURS, isOver);
  const alone = await gets(after(ALONE_SECONDS));
  let isDone = false;
  const since = performance.now();
  const [checked, meanwhile] = await Promise.all([dryRun(product).finally(() => (isDone = true)), gets(() => isDone)]);
  const seconds = (performance.now() - since) / 1000;

  process.stdout.write(`\na dry run read ${checked.toLocaleString('en')} objects in ${figure(seconds)} s\n\n`);
  const row = (name: string, { latenciesMs }: LoadResult): string[] => [
    name,
    ...[0.5, 0.99, 1].map((share) => figure(percentile(latenciesMs, share))),
  ];
  printTable(
    [`gets of a neighbour, ${NEIGHBOURS} connections`, 'p50 ms', 'p99 ms', 'max ms'],
    [row('alone', alone), row('during the dry run', meanwhile)],
  );
  return { figures: {}, failures: [...alone.failures, ...meanwhile.failures] };
}

/** @returns the number of objects that were read */
async function dryRun({ tenant }: Product): Promise<number> {
  const { body: list } = await tenant.request('GET', '/api/memory/types');
  const [{ id, jsonSchema }] = list.items;
  const path = `/api/memory/types/${id}`;
  const { status, body } = await tenant.request('PUT', `${path}?dryRun=true`, {
    jsonSchema: { ...jsonSchema, required: ['name'] },
  });
  if (status === 200) return body.checked;
  if (status !== 202) throw new Error(`the dry run was answered ${status}`);
  for (;;) {
    const { change } = (await tenant.request('GET', path)).body;
    if (change.state === 'done') return change.checked;
    if (change.state !== 'running') throw new Error(`the dry run is ${change.state}`);
    await new Promise((resolve) => setTimeout(resolve, 250));
  }
}
