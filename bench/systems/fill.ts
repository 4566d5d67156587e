import { afterRequests, runClosedLoop } from '../load/closed-loop.ts';
import type { Address } from '../load/connection.ts';
import { requestOf } from '../load/requests.ts';

const CONNECTIONS = 64;
const ATTEMPTS = 20;

/**
 * Creates objects through the system's own API. Those that it refused with 503, when nothing was done, are created
 * again: nothing is measured here.
 * @returns their ids. @throws Error if one could not be created
 */
export async function createObjects(addresses: readonly Address[], token: string, count: number): Promise<string[]> {
  const ids: string[] = [];
  let failures: string[] = [];
  for (let attempt = 0; attempt < ATTEMPTS && ids.length < count; attempt++) {
    const left = count - ids.length;
    ({ failures } = await runClosedLoop(
      { addresses, next: () => requestOf('create', { token, objectIds: [] }) },
      Math.min(CONNECTIONS, left),
      afterRequests(left),
      (_request, { body }) => ids.push((JSON.parse(body) as { id: string }).id),
    ));
    if (!failures.every((failure) => failure.startsWith('create: 503'))) break;
  }
  if (ids.length < count) throw new Error(`${failures.length} objects were not created: ${failures[0]}`);
  return ids;
}
