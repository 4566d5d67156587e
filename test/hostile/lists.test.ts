import { sharedStack } from '../support/shared-stack.ts';
import type { Tenant } from '../support/tenant.ts';
import { COUNT, printTried, withstand } from './attack.ts';

/** HOSTILE_COUNT=100 makes pages as deep as they may be, of 100,000 objects. */
const OBJECTS = 1_000 * COUNT;
const TYPES = Math.min(1_900, 20 * COUNT);
const AT_ONCE = Math.min(128, 32 * COUNT);

let hostile: Tenant;
let neighbour: Tenant;
let id: string;

beforeAll(async () => {
  const stack = await sharedStack();
  [hostile, neighbour] = await Promise.all([stack.tenant(), stack.tenant()]);
  for (const tenant of [hostile, neighbour]) await create(tenant, 'types', { type: 'mine', jsonSchema: {} });
  id = await create(neighbour, 'objects', { type: 'mine', key: 'k', content: {} });
  for (let n = 1; n < TYPES; n++) await create(hostile, 'types', { type: `type-${n}`, jsonSchema: {} });
  let made = 0;
  const make = async (): Promise<void> => {
    while (made < OBJECTS) await create(hostile, 'objects', { type: 'mine', key: `k-${made++}`, content: {} });
  };
  await Promise.all(Array.from({ length: 32 }, make));
}, 600_000 * COUNT);
afterAll(printTried);

async function create(tenant: Tenant, noun: string, body: object): Promise<string> {
  const reply = await tenant.request('POST', `/api/memory/${noun}`, body);
  expect(reply.status).toBe(201);
  return reply.body.id;
}

async function neighbourReads(): Promise<void> {
  const read = await neighbour.request('GET', `/api/memory/objects/${id}`);
  expect([read.status, read.body.key]).toEqual([200, 'k']);
}

describe('the objects of a neighbour are read while another organization', () => {
  it.each([
    ['asks for deep pages', `/api/memory/objects?page=${OBJECTS / 20}`],
    ['asks for deep pages of a type', `/api/memory/objects?type=mine&page=${OBJECTS / 20}`],
    ['lists all types', '/api/memory/types'],
  ])('%s', (name, path) =>
    withstand({
      name,
      send: () => hostile.requestOnce('GET', path),
      atOnce: AT_ONCE,
      atLeast: 4 * AT_ONCE,
      allowed: [503],
      neighbour: neighbourReads,
      neighbours: 20 * COUNT,
    }),
  );
});
