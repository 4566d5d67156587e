import { Client, Metadata, type ChannelCredentials, type ServiceError as GrpcError } from '@grpc/grpc-js';
import { JobServiceService } from 'proto/platform/v1/jobs.ts';
import { makeLog } from 'platform/core/log.ts';
import { Principal } from 'platform/core/principal.ts';
import { bind, PRINCIPAL, type CallContext } from 'platform/rpc/call.ts';
import { clientOf, openConnection } from 'platform/rpc/client.ts';
import type { Identity } from 'platform/rpc/identity.ts';
import { startServer, type RunningServer } from 'platform/rpc/server.ts';
import { operator } from 'platform/service/testing.ts';

export interface JobServer extends RunningServer {
  /** What the handler knew of each call that reached it. */
  readonly calls: CallContext[];
}

/** A real gRPC server that answers ListJobs, which operators may call. */
export async function startJobServer(identity: Identity): Promise<JobServer> {
  const calls: CallContext[] = [];
  const handlers = {
    async listJobs(_deps: unknown, _request: unknown, context: CallContext) {
      calls.push(context);
      return { jobs: [] };
    },
    runJob: async () => ({ ran: true, count: 1 }),
  };
  const server = await startServer({
    listen: '127.0.0.1:0',
    identity,
    log: makeLog(identity.name, 'silent'),
    services: [bind(JobServiceService, undefined, handlers)],
  });
  return { ...server, calls };
}

/** Calls ListJobs as the holder of these credentials. @returns 'answered', or the reason of the failure */
export function listJobsWith(
  address: string,
  channelCredentials: ChannelCredentials,
  principal: Principal = operator(),
): Promise<string> {
  const metadata = new Metadata();
  metadata.set(PRINCIPAL, Buffer.from(Principal.encode(principal).finish()));
  const client = new Client(address, channelCredentials, { 'grpc.ssl_target_name_override': 'memory' });
  const { path, requestSerialize, responseDeserialize } = JobServiceService.listJobs;
  return new Promise((resolve) => {
    client.makeUnaryRequest(path, requestSerialize, responseDeserialize, {}, metadata, (error: GrpcError | null) => {
      client.close();
      resolve(error ? error.details : 'answered');
    });
  });
}

/** A client of a job server that uses one connection. */
export function openJobClient(
  address: string,
  identity: Identity,
  audience = 'memory',
  carriedBy: 'streams' | 'unary calls' = 'streams',
) {
  const { call, close } = openConnection({ address, audience, identity, carriedBy });
  const client = clientOf(JobServiceService, call);
  return {
    list: (principal: Principal = operator()) => client.listJobs({}, { principal, requestId: 'test' }),
    close() {
      close();
      identity.close();
    },
  };
}
