import { afterRequests, runClosedLoop } from '../load/closed-loop.ts';
import type { Address } from '../load/connection.ts';
import { requestOf, type BenchObject } from '../load/requests.ts';

const CONNECTIONS = 64;
const ATTEMPTS = 20;

/**
 * Creates objects through the system's own API. Those that it refused with 503, when nothing was done, are created
 * again: nothing is measured here.
 * @throws Error if one could not be created
 */
export async function createObjects(
  addresses: readonly Address[],
  token: string,
  count: number,
): Promise<BenchObject[]> {
  const objects: BenchObject[] = [];
  let failures: string[] = [];
  for (let attempt = 0; attempt < ATTEMPTS && objects.length < count; attempt++) {
    const left = count - objects.length;
    ({ failures } = await runClosedLoop(
      { addresses, next: () => requestOf('create', { token, objects: [] }) },
      Math.min(CONNECTIONS, left),
      afterRequests(left),
      (_request, { body }) => {
        const { id, key } = JSON.parse(body) as BenchObject;
        objects.push({ id, key });
      },
    ));
    if (!failures.every((failure) => failure.startsWith('create: 503'))) break;
  }
  if (objects.length < count) throw new Error(`${failures.length} objects were not created: ${failures[0]}`);
  return objects;
}
