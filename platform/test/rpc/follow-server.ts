import { JobServiceService, type ListJobsResponse, type RunJobRequest } from 'proto/platform/v1/jobs.ts';
import { makeLog, type Log } from 'platform/core/log.ts';
import { bind, type CallContext, type CallOptions, type ServiceClient } from 'platform/rpc/call.ts';
import { clientOf, openConnection } from 'platform/rpc/client.ts';
import type { Identity } from 'platform/rpc/identity.ts';
import type { DeniedRequest } from 'platform/rpc/interceptors/denials.ts';
import { openIdentity } from 'platform/rpc/identity.ts';
import { createKeys, identityFilesOf } from 'platform/rpc/keys.ts';
import { openOperator } from 'platform/rpc/operator.ts';
import { startServer } from 'platform/rpc/server.ts';
import { operator, OPERATOR, temporaryFolder } from 'platform/service/testing.ts';
import { closedInTheEnd } from 'platform/service/test-end.ts';

const { listJobs, runJob } = JobServiceService;
const streaming = {
  requestStream: false as const,
  responseStream: true as const,
  requestSerialize: runJob.requestSerialize,
  requestDeserialize: runJob.requestDeserialize,
  responseSerialize: listJobs.responseSerialize,
  responseDeserialize: listJobs.responseDeserialize,
};

const bidirectional = { ...streaming, requestStream: true as const };

/**
 * A service with server-streaming and bidirectional methods. Each has the path, and so the options, of a method of the
 * contract that operators may call: `follow` and `converse` are repeatable, `act` and `work` are not. `ask` is unary.
 */
const FollowService = {
  follow: { path: '/credits.v1.CreditsService/ListLedgerRows', ...streaming },
  act: { path: runJob.path, ...streaming },
  converse: { path: '/credits.v1.CreditsService/GetBalance', ...bidirectional },
  work: { path: '/credits.v1.CreditsService/RebuildLedger', ...bidirectional },
  ask: listJobs,
};

/** Handles both server-streaming methods. */
export type Follow = (request: RunJobRequest, context: CallContext) => AsyncIterable<ListJobsResponse>;
/** Handles both bidirectional methods. */
export type Converse = (
  requests: AsyncIterable<RunJobRequest>,
  context: CallContext,
) => AsyncIterable<ListJobsResponse>;
export type FollowClient = ServiceClient<typeof FollowService>;

/** A reply with a number, of so many bytes and a few more. */
export const reply = (number: number, bytes = 0): ListJobsResponse => ({
  jobs: [{ name: 'x'.repeat(bytes), description: '', intervalMs: number, everyReplica: false }],
});
export const numberOf = ({ jobs }: ListJobsResponse): number => jobs[0]!.intervalMs;

const folder = temporaryFolder();
const keys = createKeys(folder.path, ['memory', 'gateway', OPERATOR]);
closedInTheEnd(() => folder.remove());

async function identityOf(name: string): Promise<Identity> {
  await keys;
  const identity = openIdentity({ name, ...identityFilesOf(folder.path, name) });
  closedInTheEnd(() => identity.close());
  return identity;
}

/** A real gRPC server. */
export async function startFollowServer(
  follow: Follow,
  given: { log?: Log; onDenied?(denied: DeniedRequest): void } = {},
  converse: Converse = (_requests, context) => follow(ANY, context),
) {
  const server = await startServer({
    listen: '127.0.0.1:0',
    identity: await identityOf('memory'),
    log: makeLog('memory', 'silent'),
    services: [
      bind(FollowService, undefined, {
        follow: (_deps, request, context) => follow(request, context),
        act: (_deps, request, context) => follow(request, context),
        converse: (_deps, requests, context) => converse(requests, context),
        work: (_deps, requests, context) => converse(requests, context),
        ask: async () => ({ jobs: [] }),
      }),
    ],
    ...given,
  });
  closedInTheEnd(() => server.drain(0));
  return { ...server, port: Number(server.address.split(':').at(-1)) };
}

export type CarriedBy = 'streams' | 'unary calls';

/** The same for a test of bidirectional calls. */
export const startConverseServer = (converse: Converse, given: Parameters<typeof startFollowServer>[1] = {}) =>
  startFollowServer((_request, context) => converse(none(), context), given, converse);
async function* none(): AsyncGenerator<never> {}

/** A client with one connection, by default of an operator. */
export async function followClient(
  address: string,
  carriedBy: CarriedBy = 'streams',
  name = OPERATOR,
): Promise<FollowClient> {
  const connection = openConnection({ address, audience: 'memory', identity: await identityOf(name), carriedBy });
  closedInTheEnd(() => connection.close());
  return clientOf(FollowService, connection.call);
}

/** A client as the commands use it. */
export async function operatorClient(address: string): Promise<FollowClient> {
  await keys;
  const { client, close } = openOperator({
    name: OPERATOR,
    keyFolder: folder.path,
    addresses: { MEMORY_ADDRESS: address },
  });
  closedInTheEnd(close);
  return client(FollowService, 'memory');
}

export const ANY = { name: '' };
export const as = (given: Partial<CallOptions> = {}): CallOptions => ({
  principal: operator(),
  requestId: 'test',
  ...given,
});

/** Reads to the end. @returns what `each` makes of the replies, and the reason of the error, if there is one */
export async function read<T>(
  replies: AsyncIterable<ListJobsResponse>,
  each: (reply: ListJobsResponse) => T,
): Promise<{ seen: T[]; error: unknown }> {
  const seen: T[] = [];
  try {
    for await (const one of replies) seen.push(each(one));
    return { seen, error: undefined };
  } catch (error) {
    return { seen, error };
  }
}
