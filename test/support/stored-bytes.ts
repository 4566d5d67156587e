import { DatabaseSync } from 'node:sqlite';
import { join } from 'node:path';
import { MongoClient } from 'mongodb';
import type { TenantRef } from './organization-records.ts';
import type { RunningStack } from './stack.ts';

/** Of each service that counts stored bytes: the collections that it counts. */
const COUNTED = { memory: ['types', 'objects'], agents: ['executions', 'execution_payloads'] };

/** Expects that each service counts exactly the bytes of the documents that it stores; nobody may write meanwhile. */
export async function expectBytesCounted(stack: RunningStack, tenant: TenantRef): Promise<void> {
  const counted: Record<string, number> = {};
  const stored: Record<string, number> = {};
  for (const [service, collections] of Object.entries(COUNTED)) {
    const [usage, ...documents] = await bytesIn(stack, service, ['usage', ...collections], tenant);
    counted[service] = usage!;
    stored[service] = documents.reduce((sum, bytes) => sum + bytes, 0);
  }
  expect(counted).toEqual(stored);
  expect(stored.memory).toBeGreaterThan(0);
}

/** The sum of `bytes` of the organization's documents in each collection. */
const bytesIn = (
  { env, folder }: RunningStack,
  service: string,
  collections: readonly string[],
  { organizationId }: TenantRef,
): Promise<number[]> =>
  env.MONGODB_URL
    ? bytesInMongo(env.MONGODB_URL, `${env.MONGODB_DATABASE}_${service}`, collections, organizationId)
    : Promise.resolve(bytesInFile(join(folder, `${service}.db`), collections, organizationId));

function bytesInFile(file: string, collections: readonly string[], organizationId: string): number[] {
  using db = new DatabaseSync(file, { readOnly: true, timeout: 5_000 });
  return collections.map(
    (name) =>
      db
        .prepare(`SELECT coalesce(sum(bytes), 0) AS n FROM "${name}" WHERE organizationId = unhex(?, '-')`)
        .get(organizationId)!.n as number,
  );
}

async function bytesInMongo(
  url: string,
  database: string,
  collections: readonly string[],
  organizationId: string,
): Promise<number[]> {
  await using client = new MongoClient(url);
  return await Promise.all(
    collections.map(async (name) => {
      const documents = await client
        .db(database)
        .collection(name)
        .find({ organizationId }, { projection: { bytes: 1 } })
        .toArray();
      return documents.reduce((sum, { bytes = 0 }) => sum + (bytes as number), 0);
    }),
  );
}
