import { createServer } from 'node:net';
import { once } from 'node:events';
import { join } from 'node:path';
import { createSecureContext } from 'node:tls';
import { readFileSync } from 'node:fs';
import {
  credentials,
  makeClientConstructor,
  status,
  type ChannelCredentials,
  type Client,
  type ClientReadableStream,
} from '@grpc/grpc-js';
import { HealthService, type HealthCheckRequest, type HealthCheckResponse } from 'proto/grpc/health/v1/health.ts';
import { JobServiceService } from 'proto/platform/v1/jobs.ts';
import { makeLog } from 'platform/core/log.ts';
import { openIdentity } from 'platform/rpc/identity.ts';
import { createKeys, identityFilesOf } from 'platform/rpc/keys.ts';
import { startServer } from 'platform/rpc/server.ts';
import { temporaryFolder } from 'platform/service/testing.ts';
import { closedInTheEnd } from 'platform/service/test-end.ts';

const folder = temporaryFolder();
const keys = join(folder.path, 'keys');
beforeAll(() => createKeys(keys, ['memory', 'gateway']));
afterAll(folder.remove);

const JOBS = 'platform.v1.JobService';
const handlers = { listJobs: () => Promise.reject(new Error()), runJob: () => Promise.reject(new Error()) };

async function start(healthListen = '127.0.0.1:0') {
  const identity = openIdentity({ name: 'memory', ...identityFilesOf(keys, 'memory') });
  const server = await startServer({
    listen: '127.0.0.1:0',
    healthListen,
    identity,
    log: makeLog('memory', 'silent'),
    services: [{ definition: JobServiceService, handlers }],
  });
  closedInTheEnd(async () => {
    await server.drain(0);
    identity.close();
  });
  return { ...server, healthAddress: server.healthAddress as string };
}

type HealthClient = Client & {
  check(request: HealthCheckRequest, done: (error: { code: status } | null, reply?: HealthCheckResponse) => void): void;
  watch(request: HealthCheckRequest): ClientReadableStream<HealthCheckResponse>;
};
const Health = makeClientConstructor(HealthService, 'grpc.health.v1.Health');

function open(address: string, channel: ChannelCredentials = credentials.createInsecure()): HealthClient {
  const client = new Health(address, channel, {
    'grpc.ssl_target_name_override': 'memory',
    'grpc.default_authority': 'memory',
  }) as unknown as HealthClient;
  closedInTheEnd(() => client.close());
  return client;
}

const check = (client: HealthClient, service: string): Promise<string> =>
  new Promise((resolve) => {
    client.check({ service }, (error, reply) => resolve(error ? status[error.code] : (reply?.status as string)));
  });

it('a server tells without TLS that it serves, as a whole and each of its services', async () => {
  const client = open((await start()).healthAddress);
  expect(await check(client, '')).toBe('SERVING');
  expect(await check(client, JOBS)).toBe('SERVING');
  expect(await check(client, 'memory.v2.Unknown')).toBe('NOT_FOUND');
});

it('the address without TLS serves nothing but health', async () => {
  const client = open((await start()).healthAddress);
  const code = await new Promise((resolve) => {
    client.makeUnaryRequest(
      JobServiceService.listJobs.path,
      () => Buffer.alloc(0),
      (bytes: Buffer) => bytes,
      {},
      (error) => resolve(status[error!.code]),
    );
  });
  expect(code).toBe('UNIMPLEMENTED');
});

it('the address of the service itself tells it, too, to whom has a certificate', async () => {
  const { address } = await start('');
  const { certFile, caFile } = identityFilesOf(keys, 'gateway');
  const [pem, ca] = [certFile, caFile].map((file) => readFileSync(file, 'utf8')) as [string, string];
  const context = createSecureContext({ cert: pem, key: pem, ca });
  expect(await check(open(address, credentials.createFromSecureContext(context)), '')).toBe('SERVING');
  expect(await check(open(address, credentials.createSsl(Buffer.from(ca))), '')).toBe('UNAVAILABLE');
});

it('who watches learns that the server stops, and does not hold up its drain', async () => {
  const server = await start();
  const [known, unknown] = [JOBS, 'memory.v2.Unknown'].map((service) => {
    const statuses: string[] = [];
    const stream = open(server.healthAddress).watch({ service });
    stream.on('data', (reply: HealthCheckResponse) => statuses.push(reply.status));
    return { stream, statuses };
  }) as [Watch, Watch];
  await Promise.all([known, unknown].map(({ stream }) => once(stream, 'data')));
  const ended = Promise.all([known, unknown].map(({ stream }) => once(stream, 'end')));
  await server.drain(600_000);
  await ended;
  expect([known.statuses, unknown.statuses]).toEqual([['SERVING', 'NOT_SERVING'], ['SERVICE_UNKNOWN']]);
});
interface Watch {
  stream: ReturnType<HealthClient['watch']>;
  statuses: string[];
}

it('a server whose address for health is taken does not start', async () => {
  const taken = createServer().listen(0, '127.0.0.1');
  closedInTheEnd(() => taken.close());
  await once(taken, 'listening');
  const { port } = taken.address() as { port: number };
  await expect(start(`127.0.0.1:${port}`)).rejects.toThrow(`127.0.0.1:${port}`);
});
