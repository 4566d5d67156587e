import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { runInNewContext } from 'node:vm';
import type { Collection } from 'platform/store/store.ts';

const ROOT = join(import.meta.dirname, '..');
const isCollection = (value: unknown): value is Collection<never> =>
  typeof value === 'object' && value !== null && 'platformIndexes' in value;

/** The shard keys that deploy/mongodb/shard.js sets in mongosh, by "<service>.<collection>". */
function shardKeys(): Map<string, string[]> {
  const keys = new Map<string, string[]>();
  const collection = { getIndexes: () => [], createIndex: () => undefined };
  runInNewContext(readFileSync(join(ROOT, 'deploy/mongodb/shard.js'), 'utf8'), {
    process: { env: { MONGODB_DATABASE: 'p' } },
    db: { getSiblingDB: () => ({ getCollection: () => collection }) },
    sh: {
      shardCollection: (namespace: string, key: object) => keys.set(namespace.replace(/^p_/, ''), Object.keys(key)),
    },
    print: () => undefined,
  });
  return keys;
}

/** The collections of organizations that the services declare, by "<service>.<collection>". */
async function declaredCollections(): Promise<Map<string, Collection<never>>> {
  const files = globSync('services/{agents,memory,credits}/src/**/*.ts', { cwd: ROOT }).filter((file) =>
    readFileSync(join(ROOT, file), 'utf8').includes('= collection<'),
  );
  const found = await Promise.all(
    files.map(async (file) => {
      const exported = Object.values((await import(join(ROOT, file))) as object).filter(isCollection);
      return exported.map((one) => [`${file.split('/')[1]}.${one.name}`, one] as const);
    }),
  );
  return new Map(found.flat().filter(([, { scope }]) => scope === 'organization'));
}

describe('the sharding plan for MongoDB', () => {
  it('lists every collection of organizations outside auth, and no other', async () => {
    expect([...shardKeys().keys()].sort()).toEqual([...(await declaredCollections()).keys()].sort());
  });
  it('allows every unique index: each begins with the whole shard key', async () => {
    const keys = shardKeys();
    for (const [name, { indexes, platformIndexes }] of await declaredCollections()) {
      expect(platformIndexes.filter(({ unique }) => unique)).toEqual([]);
      for (const { fields } of indexes.filter(({ unique }) => unique))
        expect(['organizationId', ...fields].slice(0, keys.get(name)!.length)).toEqual(keys.get(name));
      expect(keys.get(name)![0]).toBe('organizationId');
    }
  });
});
