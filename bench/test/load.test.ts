import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createTcpServer, type AddressInfo } from 'node:net';
import { afterRequests, countOf, runClosedLoop } from '../load/closed-loop.ts';
import { openHttpConnection, readAnswer, type Address } from '../load/connection.ts';
import { runFixedRate } from '../load/fixed-rate.ts';
import { median, percentile } from '../load/latencies.ts';
import { requestOf } from '../load/requests.ts';
import { nextOf, SCENARIOS, runsAsCreates } from '../load/scenarios.ts';
import { whenSteady } from '../load/warm-up.ts';

const GET = { next: () => requestOf('get', { token: '', objects: [{ id: '1', key: '1' }] }) };
const servers: Server[] = [];
afterEach(() => servers.splice(0).forEach((server) => server.close().closeAllConnections()));

async function serve(handle: (request: IncomingMessage, response: ServerResponse) => void): Promise<Address> {
  const server = createServer(handle).listen(0, '127.0.0.1');
  servers.push(server);
  await once(server, 'listening');
  return { host: '127.0.0.1', port: (server.address() as AddressInfo).port };
}

describe('a connection', () => {
  const WHOLE = 'HTTP/1.1 201 Created\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello';
  const CHUNKS = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n7\r\n, world\r\n0\r\n\r\n';

  it.each([
    ['with a length', WHOLE, { status: 201, body: 'hello', closes: true }],
    ['in chunks', CHUNKS, { status: 200, body: 'hello, world', closes: false }],
  ])('reads an answer %s, and waits for its last byte', (_name, text, answer) => {
    const bytes = Buffer.from(text);
    for (let length = 0; length < bytes.length; length++) expect(readAnswer(bytes.subarray(0, length))).toBeUndefined();
    expect(readAnswer(bytes)).toEqual(answer);
  });

  it('rejects when the server closes it before the answer, and connects again for the next request', async () => {
    let count = 0;
    const server = createTcpServer((socket) => {
      socket.once('data', () => (count++ === 0 ? socket.end('HTTP/1.1 200 OK\r\n') : socket.end(WHOLE)));
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const connection = openHttpConnection({ host: '127.0.0.1', port: (server.address() as AddressInfo).port });
    await expect(connection.send('GET / HTTP/1.1\r\n\r\n')).rejects.toThrow('closed');
    await expect(connection.send('GET / HTTP/1.1\r\n\r\n')).resolves.toMatchObject({ status: 201, body: 'hello' });
    connection.close();
    server.close();
  });
});

describe('a closed loop', () => {
  it('ends when every request that it sent is answered, so that changes can be counted', async () => {
    let served = 0;
    const address = await serve((_request, response) => {
      served += 1;
      setImmediate(() => response.end('{}'));
    });
    const result = await runClosedLoop({ ...GET, addresses: [address] }, 8, afterRequests(100));
    expect([countOf(result), served, result.latenciesMs.length, result.failures]).toEqual([100, 100, 100, []]);
  });

  it('reports every answer that is no success as a failure', async () => {
    let turn = 0;
    const address = await serve((_request, response) => response.writeHead(turn++ % 2 ? 503 : 200).end('busy'));
    const result = await runClosedLoop({ ...GET, addresses: [address] }, 1, afterRequests(10));
    expect([countOf(result), result.failures]).toEqual([5, Array(5).fill('get: 503 busy')]);
  });
});

describe('a fixed rate', () => {
  it('counts latencies from when requests were due, also of those that waited for a stalled server', async () => {
    const held: ServerResponse[] = [];
    const address = await serve((_request, response) => {
      held.push(response);
      if (held.length === 10) for (const each of held) each.end('{}');
    });
    const { latenciesMs } = await runFixedRate({ ...GET, addresses: [address] }, 100, 0.1);
    expect(latenciesMs.length).toBe(10);
    // the server answers none before the last one is due, 90 ms after the first one
    expect(Math.max(...latenciesMs)).toBeGreaterThanOrEqual(90);
  });
});

describe('a warm-up', () => {
  it('ends with two consecutive seconds that differ by less than a tenth', () => {
    let time = 0;
    const isOver = whenSteady(60, () => time);
    const secondOf = (requests: number): boolean => {
      let over = false;
      for (let n = 0; n < requests; n++) {
        time += 1_000 / requests;
        over = isOver();
      }
      return over;
    };
    expect([100, 200, 300, 320].map(secondOf)).toEqual([false, false, false, true]);
  });

  it('ends after its longest time', () => {
    let time = 0;
    const isOver = whenSteady(5, () => time);
    expect(isOver()).toBe(false);
    time = 5_000;
    expect(isOver()).toBe(true);
  });
});

describe('figures', () => {
  it('percentiles are values that were measured', () => {
    expect([median([3, 1, 2]), percentile([1, 2, 3, 4], 0.5), percentile([5], 0.99)]).toEqual([2, 2, 5]);
    expect(percentile([], 0.5)).toBeNaN();
  });

  it('a system without agents creates an object where the product runs an agent', () => {
    expect(runsAsCreates(SCENARIOS.run!)).toMatchObject({ name: 'create in place of run', shares: { create: 100 } });
    expect(runsAsCreates(SCENARIOS.mixed!)).toBe(SCENARIOS.mixed);
  });

  it('a get takes one of all objects, with one of all tokens', () => {
    const accesses = ['a', 'b'].map((token) => ({
      token,
      objects: ['1', '2'].map((n) => ({ id: token + n, key: n })),
    }));
    const next = nextOf(SCENARIOS.tokens!, accesses);
    const texts = new Set(
      Array.from({ length: 500 }, () => /objects\/(\w+) .*Bearer (\w)/s.exec(next().text)?.slice(1).join()),
    );
    expect([...texts].sort()).toEqual(['a1,a', 'a2,a', 'b1,b', 'b2,b']);
  });
});
