import { afterRequests, runClosedLoop } from '../load/closed-loop.ts';
import type { Address } from '../load/connection.ts';
import { requestOf } from '../load/requests.ts';

const CONNECTIONS = 64;

/** Creates objects through the system's own API. @returns their ids. @throws Error if one could not be created */
export async function createObjects(addresses: readonly Address[], token: string, count: number): Promise<string[]> {
  const ids: string[] = [];
  const { failures } = await runClosedLoop(
    { addresses, next: () => requestOf('create', { token, objectIds: [] }) },
    Math.min(CONNECTIONS, count),
    afterRequests(count),
    (_request, { body }) => ids.push((JSON.parse(body) as { id: string }).id),
  );
  if (failures.length > 0) throw new Error(`${failures.length} objects were not created: ${failures[0]}`);
  return ids;
}
