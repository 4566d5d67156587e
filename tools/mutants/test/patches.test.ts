import { join } from 'node:path';
import { allMutants, faultsOf } from '../src/mutants.ts';

const ROOT = join(import.meta.dirname, '../../..');
const mutants = allMutants();

it.each(mutants)('the mistake $name can still be planted', (mutant) => expect(faultsOf(ROOT, mutant)).toEqual([]));

it('each mistake has a name of its own', () => {
  const names = mutants.map(({ name }) => name);
  expect(new Set(names).size).toBe(names.length);
});

it('a mistake whose text is not there exactly once, or that names no test which is there, cannot be planted', () => {
  const [mutant] = mutants as [(typeof mutants)[number]];
  const faultsWith = (given: Partial<typeof mutant>): string[] => faultsOf(ROOT, { ...mutant, ...given });
  expect(faultsWith({ find: 'import ' })).toEqual([expect.stringMatching(/^its text is in .* ([2-9]|\d\d+) times$/)]);
  expect(faultsWith({ find: 'nowhere' })).toEqual([expect.stringMatching(/ 0 times$/)]);
  expect(faultsWith({ replace: mutant.find })).toEqual(['it changes nothing']);
  expect(faultsWith({ file: 'none.ts' })).toEqual(['there is no none.ts']);
  expect(faultsWith({ tests: { 'none.test.ts': 'x' } })).toEqual(['there is no none.test.ts']);
  expect(faultsWith({ tests: {} })).toEqual(['it names no test']);
});
