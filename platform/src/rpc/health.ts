import { Server, ServerCredentials, status, type ServerWritableStream } from '@grpc/grpc-js';
import {
  HealthService,
  type HealthCheckRequest,
  type HealthCheckResponse,
  type HealthServer,
} from 'proto/grpc/health/v1/health.ts';
import { addressFault } from '../core/start-error.ts';

type Watcher = ServerWritableStream<HealthCheckRequest, HealthCheckResponse>;

/** Watch is free to call, and each watcher holds a stream. */
const MAX_WATCHERS = 100;

/** The standard health service (grpc.health.v1): SERVING until `stop`. It never follows a dependency of the process. */
export interface Health {
  readonly handlers: Pick<HealthServer, 'check' | 'watch'>;
  /** From now on NOT_SERVING. Ends the streams of watchers, which would otherwise hold up a drain. */
  stop(): void;
}

/** @param services full names, such as "memory.v1.MemoryService" */
export function makeHealth(services: readonly string[]): Health {
  const known = new Set(['', ...services]);
  const watchers = new Set<Watcher>();
  let now: HealthCheckResponse['status'] = 'SERVING';
  return {
    handlers: {
      check({ request: { service } }, reply) {
        if (known.has(service)) reply(null, { status: now });
        else reply({ code: status.NOT_FOUND, details: 'There is no such service' });
      },
      watch(call) {
        if (watchers.size >= MAX_WATCHERS) {
          call.emit('error', { code: status.RESOURCE_EXHAUSTED, details: `At most ${MAX_WATCHERS} may watch` });
          return;
        }
        call.write({ status: known.has(call.request.service) ? now : 'SERVICE_UNKNOWN' });
        if (now === 'NOT_SERVING') {
          call.end();
          return;
        }
        watchers.add(call);
        for (const event of ['cancelled', 'close', 'error']) call.on(event, () => watchers.delete(call));
      },
    },
    stop() {
      now = 'NOT_SERVING';
      for (const call of watchers) {
        if (known.has(call.request.service)) call.write({ status: now });
        call.end();
      }
      watchers.clear();
    },
  };
}

/**
 * Serves nothing but health, without TLS: the probes of Kubernetes have no certificate (ADR 32).
 * @throws StartError when the address cannot be bound
 */
export async function serveHealth(
  name: string,
  listen: string,
  { handlers }: Health,
): Promise<{ address: string; close(): void }> {
  const server = new Server({ 'grpc.max_receive_message_length': 4_096, 'grpc.enable_channelz': 0 });
  server.addService(HealthService, { ...handlers });
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync(listen, ServerCredentials.createInsecure(), (error, bound) =>
      error ? reject(addressFault(name, listen, error)) : resolve(bound),
    );
  });
  return { address: `${listen.slice(0, listen.lastIndexOf(':'))}:${port}`, close: () => server.forceShutdown() };
}
