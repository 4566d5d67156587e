import { connect, type Socket } from 'node:net';
import { once } from 'node:events';
import { makeLog } from 'platform/core/log.ts';
import { closedInTheEnd } from 'platform/service/test-end.ts';
import { readEngine } from 'platform/service/metrics.ts';
import {
  counter,
  gauge,
  histogram,
  NO_METRICS,
  openMetrics,
  reading,
  type OpenMetrics,
} from 'platform/telemetry/metrics.ts';
import { PEER_METRICS } from 'platform/service/metrics.ts';
import { scrape, sumOf } from '../../../test/support/scrape.ts';

const SENT = counter('test_sent_total', 'What was sent.', ['kind']);
const SECONDS = histogram('test_seconds', 'How long it took.', [], [0.1, 1]);
const OPEN = gauge('test_open', 'What is open.', ['place']);
const log = makeLog('memory', 'silent');

async function open(listen = '127.0.0.1:0'): Promise<OpenMetrics & { address: string }> {
  const metrics = await openMetrics('memory', listen, [SENT, SECONDS, OPEN, ...PEER_METRICS], log);
  closedInTheEnd(() => metrics.close());
  return metrics as typeof metrics & { address: string };
}
const portOf = (address: string): number => Number(address.split(':')[1]);
async function connected(address: string): Promise<Socket> {
  const socket = connect(portOf(address), '127.0.0.1');
  closedInTheEnd(() => socket.destroy());
  await once(socket, 'connect');
  return socket;
}
/** Everything that arrives until the connection is closed. */
async function raw(address: string, text: string): Promise<string> {
  const socket = await connected(address);
  socket.write(text);
  let received = '';
  for await (const chunk of socket) received += String(chunk);
  return received;
}

describe('metrics', () => {
  it('are those that the program told, with the program in each series', async () => {
    const metrics = await open();
    metrics.add(SENT, { kind: 'a' });
    metrics.add(SENT, { kind: 'a' }, 2);
    metrics.add(SENT, { kind: 'b' });
    metrics.observe(SECONDS, {}, 0.05);
    metrics.observe(SECONDS, {}, 0.5);
    metrics.observe(SECONDS, {}, 5);
    const series = await scrape(metrics.address);
    expect(sumOf(series, 'test_sent_total', { kind: 'a', program: 'memory' })).toBe(3);
    expect(sumOf(series, 'test_sent_total', { kind: 'b' })).toBe(1);
    expect(['0.1', '1', '+Inf'].map((le) => sumOf(series, 'test_seconds_bucket', { le }))).toEqual([1, 2, 3]);
    expect(sumOf(series, 'test_seconds_sum')).toBeCloseTo(5.55);
    expect(sumOf(series, 'process_cpu_seconds_total', { program: 'memory' })).toBeGreaterThan(0);
  });

  it('are read at each scrape: what is not told any longer is gone, and what fails does no harm to others', async () => {
    const metrics = await open();
    let places = ['here', 'there'];
    let asked = 0;
    metrics.read(async () => {
      asked += 1;
      if (places.length === 0) throw new Error('nobody knows');
      return places.map((place) => reading(OPEN, { place }, 1));
    });
    metrics.add(SENT, { kind: 'a' });
    const openPlaces = async () => sumOf(await scrape(metrics.address), 'test_open');
    expect(asked).toBe(0);
    expect(await openPlaces()).toBe(2);
    expect(await openPlaces()).toBe(2);
    places = ['there'];
    expect(await openPlaces()).toBe(1);
    places = [];
    expect(await openPlaces()).toBeUndefined();
    expect(sumOf(await scrape(metrics.address), 'test_sent_total')).toBe(1);
    expect(asked).toBe(5);
  });

  it('share one rendering among scrapes that come at once', async () => {
    const metrics = await open();
    let asked = 0;
    const release = Promise.withResolvers<void>();
    metrics.read(async () => {
      asked += 1;
      await release.promise;
      return [reading(OPEN, { place: 'here' }, asked)];
    });
    const sockets = await Promise.all(Array.from({ length: 8 }, () => connected(metrics.address)));
    const answers = sockets.map((socket) => once(socket, 'data'));
    for (const socket of sockets) socket.write('GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n');
    // a request of another path is answered meanwhile, so all that came before it have begun
    expect((await fetch(`http://${metrics.address}/`)).status).toBe(404);
    release.resolve();
    for (const [bytes] of (await Promise.all(answers)) as [Buffer][]) expect(String(bytes)).toMatch(/^HTTP\/1\.1 200/);
    expect(asked).toBe(1);
  });

  it('are rendered at most ten times a second', async () => {
    const metrics = await open();
    const begunAt: number[] = [];
    metrics.read(() => {
      begunAt.push(performance.now());
      return Promise.resolve([]);
    });
    const askedAt = performance.now();
    for (let i = 0; i < 4; i++) expect((await fetch(`http://${metrics.address}/metrics`)).status).toBe(200);
    expect(begunAt).toHaveLength(4);
    // not before the second tenth of a second after the first scrape, and so on; a timer may come a millisecond early
    for (const [place, at] of begunAt.entries()) expect(at - askedAt).toBeGreaterThanOrEqual(place * 98);
  });

  it('give other work its turn between two metrics', async () => {
    const metrics = await open();
    let turns = 0;
    let isOver = false;
    const count = (): void => {
      turns += 1;
      if (!isOver) setImmediate(count);
    };
    count();
    await scrape(metrics.address);
    isOver = true;
    // one at least for each metric
    expect(turns).toBeGreaterThan(10);
  });

  it('tell whether an engine answers, and since when not', async () => {
    const metrics = await open();
    let isUp = true;
    readEngine(metrics, 'store', 'MongoDB', () => (isUp ? Promise.resolve() : Promise.reject(new Error('refused'))));
    readEngine(metrics, 'bus', 'Kafka', () => Promise.reject(new Error('never')));
    const up = (series: Awaited<ReturnType<typeof scrape>>, role: string) =>
      sumOf(series, 'agentmemory_engine_up', { role });
    const answeredAt = (series: Awaited<ReturnType<typeof scrape>>, role: string) =>
      sumOf(series, 'agentmemory_engine_last_success_timestamp_seconds', { role });
    const before = await scrape(metrics.address);
    expect([up(before, 'store'), up(before, 'bus')]).toEqual([1, 0]);
    expect(answeredAt(before, 'bus')).toBeUndefined();
    isUp = false;
    const during = await scrape(metrics.address);
    expect(up(during, 'store')).toBe(0);
    expect(answeredAt(during, 'store')).toBe(answeredAt(before, 'store'));
    isUp = true;
    expect(up(await scrape(metrics.address), 'store')).toBe(1);
  });

  it('tell that an engine is down which does not answer, within the time of a scrape', async () => {
    const metrics = await open();
    readEngine(metrics, 'store', 'MongoDB', () => new Promise(() => undefined));
    metrics.read(() => new Promise(() => undefined));
    expect(sumOf(await scrape(metrics.address), 'agentmemory_engine_up', { role: 'store' })).toBe(0);
  });
});

describe('the listener of metrics', () => {
  it.each([
    ['GET / HTTP/1.1', 404],
    ['GET /metrics/ HTTP/1.1', 404],
    ['GET /metrics/../secret HTTP/1.1', 404],
    ['POST /metrics HTTP/1.1', 405],
    ['HEAD /metrics HTTP/1.1', 405],
    ['DELETE /metrics HTTP/1.1', 405],
    ['OPTIONS /metrics HTTP/1.1', 405],
  ])('answers nothing but GET /metrics: %s', async (line, status) => {
    const { address } = await open();
    const reply = await raw(address, `${line}\r\nhost: x\r\nconnection: close\r\n\r\n`);
    expect(reply).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
    expect(reply.split('\r\n\r\n')[1]).toBe('');
  });

  it('refuses a head that is too long, and a body that never ends', async () => {
    const { address } = await open();
    expect(await raw(address, `GET /metrics HTTP/1.1\r\nhost: ${'x'.repeat(9_000)}\r\n\r\n`)).toMatch(
      /^HTTP\/1\.1 431/,
    );
    const head = 'POST /metrics HTTP/1.1\r\nhost: x\r\ncontent-length: 1000000\r\n\r\n';
    expect(await raw(address, `${head}${'x'.repeat(1_000)}`)).toMatch(/^HTTP\/1\.1 405/);
  });

  it('closes connections on which nothing comes, and those that are too many', async () => {
    const { address } = await open();
    const silent = await Promise.all(Array.from({ length: 16 }, () => connected(address)));
    const closed = silent.map((socket) => once(socket.resume(), 'close'));
    // the seventeenth has no place
    const [late] = await Promise.allSettled([fetch(`http://${address}/metrics`)]);
    expect(late.status).toBe('rejected');
    await Promise.all(closed);
    expect((await fetch(`http://${address}/metrics`)).status).toBe(200);
  });

  it('says which setting names an address that is taken', async () => {
    const { address } = await open();
    await expect(open(address)).rejects.toThrow(
      `The address ${address} is in use by another program; MEMORY_METRICS_LISTEN sets another`,
    );
  });

  it('is not there without an address', async () => {
    expect(await openMetrics('memory', '', [SENT], log)).toBe(NO_METRICS);
    expect(NO_METRICS).toMatchObject({ isOn: false, address: undefined });
  });
});
