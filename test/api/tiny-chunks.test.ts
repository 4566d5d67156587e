import { readFileSync } from 'node:fs';
import { openSocket, readReply } from '../support/raw-http.ts';
import { startStack, type Stack } from '../support/stack.ts';
import type { Tenant } from '../support/tenant.ts';

const MIB = 1 << 20;
const BODIES = 16;
/** What the process needs without load, and what is in flight; each such body took 300 MiB. */
const MAX_RSS = 1_024 * MIB;

let stack: Stack;
let hostile: Tenant;
let neighbour: Tenant;
beforeAll(async () => {
  stack = await startStack();
  [hostile, neighbour] = await Promise.all([stack.tenant(), stack.tenant()]);
});
afterAll(() => stack.stop());

const peakOf = (pid: number): number =>
  Number(/^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1024;

it('bodies of 1 MiB in chunks of one byte are refused, take little memory, and no neighbour waits for them', async () => {
  const value = 'x'.repeat(MIB - 100);
  const body = Array.from(JSON.stringify({ type: 't', content: value }), (byte) => `1\r\n${byte}\r\n`).join('');
  const statuses: number[] = [];
  const sent = Array.from({ length: BODIES }, async () => {
    const socket = await openSocket(stack.baseUrl);
    const reply = readReply(socket);
    socket.write(
      `POST /api/memory/objects HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${hostile.token}\r\n` +
        `Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n${body}0\r\n\r\n`,
    );
    statuses.push((await reply).status);
  });
  while (statuses.length < BODIES) expect((await neighbour.request('GET', '/api/memory/types')).status).toBe(200);
  await Promise.all(sent);
  // on a busy machine some are answered before that, because their token was not looked up in time
  expect(statuses).toContain(400);
  expect(statuses.filter((status) => status !== 400 && status !== 503)).toEqual([]);
  const peak = peakOf(stack.pidOf('gateway'));
  process.stdout.write(`The gateway took ${Math.round(peak / MIB)} MiB at most\n`);
  expect(peak).toBeLessThan(MAX_RSS);
});
