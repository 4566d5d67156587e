import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { makeSchemaCache } from 'platform/json-schema/cache.ts';
import type { KeptMemory } from './kept-memory.ts';
import { CLASSES } from './schema-classes.ts';

let kept: KeptMemory;
beforeAll(() => {
  const program = join(import.meta.dirname, 'kept-memory.ts');
  kept = JSON.parse(execFileSync(process.execPath, ['--expose-gc', program], { encoding: 'utf8' })) as KeptMemory;
});

describe('the estimated size of a compiled schema', () => {
  it.each(Object.keys(CLASSES))('is not below what it keeps in memory: %s', (name) => {
    expect(kept.estimated[name]).toBeGreaterThan(kept.measured[name]!);
  });
});

describe('the cache of compiled schemas', () => {
  it('returns the compiled schema again, to the same organization', () => {
    const cache = makeSchemaCache(1_000_000);
    const first = cache.compile('a', '{"type":"string"}');
    expect(cache.compile('a', '{"type":"string"}')).toBe(first);
    expect(cache.compile('b', '{"type":"string"}')).not.toBe(first);
  });

  it('keeps the schemas of one organization while another fills it, within its size of real memory', () => {
    const { maxBytes, keptBytes, hostileBytes, keepsNeighbour } = kept.cache;
    expect(keptBytes).toBeLessThan(maxBytes);
    expect(hostileBytes).toBeGreaterThan(2 * maxBytes);
    expect(keepsNeighbour).toBe(true);
  });

  it('keeps nothing of a schema that is rejected', () => {
    const cache = makeSchemaCache(1_000_000);
    for (let i = 0; i < 2; i++) expect(() => cache.compile('a', '{"type":1}')).toThrow('not acceptable');
  });
});
