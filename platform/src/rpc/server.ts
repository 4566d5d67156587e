import {
  logVerbosity,
  Metadata,
  Server,
  ServerCredentials,
  setLogVerbosity,
  type handleUnaryCall,
  type sendUnaryData,
  type ServerUnaryCall,
} from '@grpc/grpc-js';
import type { ServerHttp2Stream } from 'node:http2';
import { CALLER_LOST, type CallContext, type Handlers, type ServiceDefinition } from './call.ts';
import { codeOf, ServiceError } from '../core/errors.ts';
import type { Identity } from './identity.ts';
import { newId } from '../core/ids.ts';
import type { Log } from '../core/log.ts';
import { policyFor, requireAccess, type MethodPolicy } from './method-options.ts';
import { addressFault } from '../core/start-error.ts';
import { toGrpcError } from './wire-errors.ts';

export interface Served<D extends ServiceDefinition = ServiceDefinition> {
  definition: D;
  handlers: Handlers<D>;
}
/** Pairs a definition with its handlers; the compiler checks that every RPC has one. */
export const served = <D extends ServiceDefinition>(definition: D, handlers: Handlers<D>): Served => ({
  definition,
  handlers,
});

export interface RunningServer {
  /** host:port that it listens on. */
  address: string;
  /** Takes no new call, waits for the running ones up to graceMs, then cancels them. */
  drain(graceMs: number): Promise<void>;
}

export interface ServerOptions {
  listen: string;
  identity: Identity;
  log: Log;
  services: readonly Served[];
}

// what it would print, our own errors say
setLogVerbosity(logVerbosity.NONE);

const MAX_REQUEST_BYTES = 4 << 20;

/** @throws StartError when the address cannot be bound */
export async function startServer({ listen, identity, log, services }: ServerOptions): Promise<RunningServer> {
  const server = new Server({
    'grpc.max_receive_message_length': MAX_REQUEST_BYTES,
    'grpc.max_send_message_length': -1,
    'grpc.enable_channelz': 0,
  });
  for (const { definition, handlers } of services) {
    const implementation: Record<string, handleUnaryCall<unknown, unknown>> = {};
    for (const [name, method] of Object.entries(definition)) {
      const handler = handlers[name] as (request: unknown, context: CallContext) => Promise<unknown>;
      implementation[name] = intercept(method.path, policyFor(method.path), handler, { identity, log });
    }
    server.addService(definition as never, implementation);
  }
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync(listen, ServerCredentials.createInsecure(), (error, bound) =>
      error ? reject(addressFault(identity.name, listen, error)) : resolve(bound),
    );
  });
  return { address: `${listen.slice(0, listen.lastIndexOf(':'))}:${port}`, drain: (graceMs) => drain(server, graceMs) };
}

function drain(server: Server, graceMs: number): Promise<void> {
  return new Promise((resolve) => {
    const hard = setTimeout(() => server.forceShutdown(), graceMs);
    server.tryShutdown(() => {
      clearTimeout(hard);
      resolve();
    });
  });
}

type Environment = Pick<ServerOptions, 'identity' | 'log'>;

/** Request id -> log -> errors -> caller and principal -> access -> handler: the same for every RPC of every service. */
function intercept(
  path: string,
  policy: MethodPolicy,
  handler: (request: unknown, context: CallContext) => Promise<unknown>,
  { identity, log }: Environment,
): handleUnaryCall<unknown, unknown> {
  const answer = async (
    call: ServerUnaryCall<unknown, unknown>,
    requestId: string,
    signal: AbortSignal,
  ): Promise<unknown> => {
    const { caller, principal } = await identity.verify(first(call.metadata, 'assertion'));
    const deadline = deadlineOf(call, policy);
    // It waited in the queue of this process for longer than its caller did. gRPC counts deadlines by the machine's clock.
    if (signal.aborted || Date.now() > deadline) throw new ServiceError('CLIENT_GONE');
    requireAccess(policy, caller, principal);
    return handler(call.request, { principal, caller, requestId, signal, deadline, log: log.child({ requestId }) });
  };
  return (call, reply: sendUnaryData<unknown>) => {
    const requestId = first(call.metadata, 'x-request-id') || newId();
    const aborter = new AbortController();
    onCancelled(call, (reason) => aborter.abort(reason));
    answer(call, requestId, aborter.signal).then(
      (response) => {
        log.debug({ path, requestId }, 'answered');
        reply(null, response);
      },
      (error: unknown) => reply(toGrpcError(logged(error, { path, requestId }, log))),
    );
  };
}

function logged(error: unknown, facts: { path: string; requestId: string }, log: Log): ServiceError {
  if (!(error instanceof ServiceError)) {
    log.error({ ...facts, error }, 'failed');
    return new ServiceError('INTERNAL');
  }
  const level = error.reason === 'INTERNAL' ? 'error' : error.cause ? 'warn' : 'debug';
  log[level]({ ...facts, code: codeOf(error.reason), error: error.cause }, 'refused');
  return error;
}

/**
 * Calls back when the call is cancelled. grpc-js tells a cancel by the caller and a lost connection alike; the HTTP/2 session
 * below the call knows, a moment later.
 */
function onCancelled(call: ServerUnaryCall<unknown, unknown>, notify: (reason: string | undefined) => void): void {
  const session = (call as unknown as { call?: { stream?: ServerHttp2Stream } }).call?.stream?.session;
  call.on('cancelled', () => setImmediate(() => notify(session?.destroyed ? CALLER_LOST : undefined)));
}

const first = (metadata: Metadata, key: string): string => String(metadata.get(key)[0] ?? '');

function deadlineOf(call: ServerUnaryCall<unknown, unknown>, policy: MethodPolicy): number {
  const deadline = Number(call.getDeadline());
  return Number.isFinite(deadline) ? deadline : Date.now() + policy.deadlineMs;
}
