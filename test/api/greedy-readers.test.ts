import { readFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { openSocket } from '../support/raw-http.ts';
import { startStack, type Stack } from '../support/stack.ts';
import type { Tenant } from '../support/tenant.ts';

const MIB = 1 << 20;
const OBJECTS = 40;
const OBJECT_BYTES = 250_000;
const SOCKETS = 8;
const REQUESTS_PER_SOCKET = 600;
const IN_FLIGHT = 64 * MIB;
/**
 * What the process needs without load, and while a page is written: its message, its text and its bytes, and garbage
 * that is not collected yet.
 */
const MAX_RSS = 256 * MIB + 4 * IN_FLIGHT;

let stack: Stack;
let greedy: Tenant;
let neighbour: Tenant;
beforeAll(async () => {
  stack = await startStack({
    env: { BYTES_IN_FLIGHT: String(IN_FLIGHT), BYTES_IN_FLIGHT_PER_TOKEN: String(IN_FLIGHT / 2) },
  });
  greedy = await stack.tenant();
  neighbour = await stack.tenant();
  for (const tenant of [greedy, neighbour])
    await tenant.request('POST', '/api/memory/types', { type: 'Page', jsonSchema: {} });
  for (let object = 0; object < OBJECTS; object++)
    await greedy.request('POST', '/api/memory/objects', {
      type: 'Page',
      key: String(object),
      content: { text: 'x'.repeat(OBJECT_BYTES) },
    });
});
afterAll(() => stack.stop());

const rssOf = (pid: number): number =>
  Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1024;
async function askAndNeverRead(path: string): Promise<Socket> {
  const socket = await openSocket(stack.baseUrl);
  socket.pause();
  const { host } = new URL(stack.baseUrl);
  socket.write(
    `GET ${path} HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${greedy.token}\r\n\r\n`.repeat(
      REQUESTS_PER_SOCKET,
    ),
  );
  return socket;
}

it('clients that ask for large pages and never read them take a bounded share of memory, and no neighbour waits for them', async () => {
  const pid = stack.pidOf('gateway');
  const sockets = await Promise.all(
    Array.from({ length: SOCKETS }, () => askAndNeverRead('/api/memory/objects?type=Page&pageSize=100')),
  );
  let peak = 0;
  const statuses = new Set<number>();
  for (let request = 0; request < 60; request++) {
    statuses.add((await neighbour.request('GET', '/api/memory/objects?type=Page')).status);
    peak = Math.max(peak, rssOf(pid));
  }
  expect([...statuses]).toEqual([200]);
  expect(peak).toBeLessThan(MAX_RSS);
  for (const socket of sockets) socket.destroy();
});
