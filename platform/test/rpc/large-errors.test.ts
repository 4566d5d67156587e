import { JobServiceService } from 'proto/platform/v1/jobs.ts';
import { ServiceError } from 'platform/core/errors.ts';
import { bind, type ServiceClient } from 'platform/rpc/call.ts';
import { clientOf, openConnection, type Connection } from 'platform/rpc/client.ts';
import { openIdentity } from 'platform/rpc/identity.ts';
import { createKeys, identityFilesOf } from 'platform/rpc/keys.ts';
import { startServer, type RunningServer } from 'platform/rpc/server.ts';
import { makeLog } from 'platform/core/log.ts';
import { operator, OPERATOR, temporaryFolder } from 'platform/service/testing.ts';

const long = '/'.repeat(30_000);
const halfOfAPair = '😀'.slice(0, 1);
const violations = Array.from({ length: 40 }, () => ({ path: `/€${'€'.repeat(900)}`, message: '€'.repeat(900) }));

/** What a tenant can make of the text of an error. */
const ERRORS: Record<string, () => ServiceError> = {
  'a path of 60,000 characters': () =>
    new ServiceError('INVALID_SCHEMA', undefined, { details: [{ path: long.replaceAll('/', '~1'), message: 'bad' }] }),
  'forty violations of the longest kind': () => new ServiceError('INVALID_CONTENT', undefined, { details: violations }),
  'a message of 30,000 characters': () => new ServiceError('AGENT_FAILED', long),
  'a message that ends with half of a surrogate pair': () => new ServiceError('AGENT_FAILED', `x${halfOfAPair}`),
};

describe('an error whose text a tenant chose', () => {
  const folder = temporaryFolder();
  const waiting = new Map<string, () => void>();
  let server: RunningServer;
  let connection: Connection;
  let client: ServiceClient<typeof JobServiceService>;

  beforeAll(async () => {
    await createKeys(folder.path, ['memory', OPERATOR]);
    const identityOf = (name: string) => openIdentity({ name, ...identityFilesOf(folder.path, name) });
    const handlers = {
      listJobs: async () => ({ jobs: [] }),
      runJob: async (_: unknown, { name }: { name: string }) => {
        const error = ERRORS[name];
        if (error) throw error();
        await new Promise<void>((resolve) => waiting.set(name, resolve));
        return { ran: true, count: 1 };
      },
    };
    server = await startServer({
      listen: '127.0.0.1:0',
      identity: identityOf('memory'),
      log: makeLog('memory', 'silent'),
      services: [bind(JobServiceService, undefined, handlers)],
    });
    connection = openConnection({ address: server.address, audience: 'memory', identity: identityOf(OPERATOR) });
    client = clientOf(JobServiceService, connection.call);
  });
  afterAll(async () => {
    connection.close();
    await server.drain(1_000);
    folder.remove();
  });

  const options = () => ({ principal: operator(), requestId: 'test' });

  it.each(Object.keys(ERRORS))("with %s reaches its caller and leaves a neighbour's call alone", async (name) => {
    const neighbour = client.runJob({ name: `beside ${name}` }, options());
    while (!waiting.has(`beside ${name}`)) await new Promise((resolve) => setImmediate(resolve));
    const { reason, message, details } = ERRORS[name]!();
    const received = await client.runJob({ name }, options()).catch((error: unknown) => error as ServiceError);
    expect(received).toMatchObject({ reason });
    expect((received as ServiceError).message).toBe(message);
    expect((received as ServiceError).message.isWellFormed()).toBe(true);
    expect(details.slice(0, (received as ServiceError).details.length)).toEqual((received as ServiceError).details);
    expect((received as ServiceError).details.length > 0).toBe(details.length > 0);
    waiting.get(`beside ${name}`)!();
    await expect(neighbour).resolves.toEqual({ ran: true, count: 1 });
    await expect(client.listJobs({}, options())).resolves.toEqual({ jobs: [] });
  });
});
