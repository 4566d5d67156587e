import { jest } from '@jest/globals';
import { JobServiceService } from 'proto/platform/v1/jobs.ts';
import { bind, type ServiceClient } from 'platform/rpc/call.ts';
import { clientOf, openConnection, type Connection } from 'platform/rpc/client.ts';
import { openIdentity } from 'platform/rpc/identity.ts';
import { createKeys, identityFilesOf } from 'platform/rpc/keys.ts';
import { startServer, type RunningServer } from 'platform/rpc/server.ts';
import { makeLog } from 'platform/core/log.ts';
import { operator, OPERATOR, temporaryFolder } from 'platform/service/testing.ts';

describe('a reply that is larger than its caller takes', () => {
  const folder = temporaryFolder();
  let jobs = [{ name: 'x'.repeat(10_000), description: '', intervalMs: 0, everyReplica: false }];
  let server: RunningServer;
  let connection: Connection;
  let client: ServiceClient<typeof JobServiceService>;

  beforeAll(async () => {
    await createKeys(folder.path, ['memory', OPERATOR]);
    const identityOf = (name: string) => openIdentity({ name, ...identityFilesOf(folder.path, name) });
    server = await startServer({
      listen: '127.0.0.1:0',
      identity: identityOf('memory'),
      log: makeLog('memory', 'silent'),
      services: [
        bind(JobServiceService, undefined, {
          listJobs: async () => ({ jobs }),
          runJob: async () => ({ ran: true, count: 1 }),
        }),
      ],
    });
    connection = openConnection({ address: server.address, audience: 'memory', identity: identityOf(OPERATOR) });
    client = clientOf(JobServiceService, connection.call);
  });
  afterAll(async () => {
    connection.close();
    await server.drain(1_000);
    folder.remove();
  });
  const list = (maxReplyBytes?: number) =>
    client.listJobs({}, { principal: operator(), requestId: 'test', ...(maxReplyBytes && { maxReplyBytes }) });

  it('is not sent; the error says how large it is', async () => {
    const size = JobServiceService.listJobs.responseSerialize(await list()).length;
    await expect(list(size - 1)).rejects.toMatchObject({ reason: 'REPLY_TOO_LARGE', facts: { bytes: size } });
    expect(await list(size)).toEqual(await list());
  });

  it('is the same in pieces as in one', async () => {
    jobs = Array.from({ length: 70 }, (_, i) => ({
      name: `${i}`,
      description: 'é😀'.repeat(i * 300),
      intervalMs: i,
      everyReplica: i % 2 === 0,
    }));
    const pieces = jest.spyOn(Buffer, 'concat');
    const before = pieces.mock.calls.length;
    expect(await list()).toEqual({ jobs });
    const lengths = pieces.mock.calls.slice(before).map(([parts]) => parts.length);
    expect(Math.max(...lengths)).toBeGreaterThan(10);
    pieces.mockRestore();
  });
});
