import { measureRuntimes } from '../commands/runtimes.ts';
import { afterRequests, runClosedLoop } from '../load/closed-loop.ts';
import { MEMORY_SCENARIOS, SCENARIOS } from '../load/scenarios.ts';
import { measureRound } from '../measure/round.ts';
import { DEFAULTS } from '../settings.ts';
import { storedBytes } from '../systems/file-records.ts';
import { startProduct, type Product } from '../systems/product.ts';
import { targetOf } from '../systems/system.ts';

let product: Product;
beforeAll(async () => {
  product = await startProduct({ name: 'product', objects: 20, organizations: 2 });
});
afterAll(() => product.stop());

describe('a round on the product', () => {
  it.each(['get', 'list', 'create', 'run', 'tokens', 'jwts', 'filtered', 'deep', 'update', 'upsert'])(
    '%s: nothing fails, and every change is in the records',
    async (name) => {
      const scenario = { ...SCENARIOS, ...MEMORY_SCENARIOS }[name]!;
      const round = await measureRound(product, () => runClosedLoop(targetOf(product, scenario), 4, afterRequests(40)));
      expect(round.failures).toEqual([]);
      expect(round.drained).toBeDefined();
    },
  );

  it('a run of each runtime succeeds, and has a figure for the goals', async () => {
    const short = { connections: 2, rounds: 1, seconds: 1, warmUpSeconds: 1 };
    const { failures, figures } = await measureRuntimes({ ...DEFAULTS, ...short });
    expect(failures).toEqual([]);
    const types = ['expression', 'script', 'http', 'llm'];
    const ofTypes = Object.keys(figures).filter((name) => !name.includes(' / '));
    expect(ofTypes).toEqual(types.map((type) => `${type} run cpu`));
    expect(figures).toHaveProperty(['script run cpu / expression run cpu'], expect.any(Number));
  });

  it('finds the size of every database', () => {
    expect(Object.values(storedBytes(product.stack.folder)).every((bytes) => bytes > 4_096)).toBe(true);
  });
});
