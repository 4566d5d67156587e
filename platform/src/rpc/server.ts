import {
  logVerbosity,
  Server,
  setLogVerbosity,
  type handleUnaryCall,
  type Metadata,
  type ServerDuplexStream,
  type ServerUnaryCall,
} from '@grpc/grpc-js';
import { X509Certificate } from 'node:crypto';
import { CallsServiceService } from 'proto/platform/v1/calls.ts';
import { ServiceError } from '../core/errors.ts';
import { fairScheduler } from '../core/fair-scheduler.ts';
import { newId } from '../core/ids.ts';
import type { Log } from '../core/log.ts';
import { Principal } from '../core/principal.ts';
import { addressFault } from '../core/start-error.ts';
import {
  CALLER_LOST,
  MAX_REPLY_BYTES,
  PRINCIPAL,
  REQUEST_ID,
  type BoundService,
  type CallContext,
  type ServiceDefinition,
} from './call.ts';
import { makeCarrier, type CarriedCall, type Carrier } from './call-carrier.ts';
import { handleThrough, type Call } from './handle.ts';
import type { Identity, Peer } from './identity.ts';
import { requireAccess } from './interceptors/access.ts';
import { identifyCaller } from './interceptors/caller.ts';
import { requireTimeLeft } from './interceptors/deadline.ts';
import { noteDenials, type DeniedRequest } from './interceptors/denials.ts';
import { logCalls } from './interceptors/log.ts';
import { serializeReply } from './serialize-reply.ts';
import { methodOptionsOf, type MethodOptions } from './method-options.ts';
import { ServerTlsCredentials } from './tls-credentials.ts';
import { toGrpcError } from './wire-errors.ts';

export interface RunningServer {
  /** host:port that it listens on. */
  address: string;
  /** Accepts no new calls, waits up to graceMs for the running ones, then cancels them. */
  drain(graceMs: number): Promise<void>;
}

export interface ServerOptions {
  listen: string;
  identity: Identity;
  log: Log;
  services: readonly BoundService[];
  /** Called for every request that a handler denied. */
  onDenied?(denied: DeniedRequest): void;
}

// grpc-js prints nothing: the errors that we log and throw say the same.
setLogVerbosity(logVerbosity.NONE);

const MAX_REQUEST_BYTES = 4 << 20;
type ServerCall = ServerUnaryCall<unknown, unknown> | ServerDuplexStream<unknown, unknown>;

/**
 * Serves gRPC: every call of every service goes through the same interceptors to its handler.
 * @throws StartError when the address cannot be bound
 */
export async function startServer(options: ServerOptions): Promise<RunningServer> {
  const { listen, identity, log, services, onDenied = () => undefined } = options;
  const interceptors = [logCalls, identifyCaller, requireTimeLeft, requireAccess, noteDenials(onDenied)];
  const peerOf = (call: ServerCall): Peer => {
    const shown = call.getAuthContext().sslPeerCertificate;
    return identity.peerOf(shown && new X509Certificate(shown.raw));
  };
  const tls = new ServerTlsCredentials(identity);
  const server = new Server({
    'grpc.max_receive_message_length': MAX_REQUEST_BYTES,
    'grpc.max_send_message_length': -1,
    'grpc.enable_channelz': 0,
  });
  const methods = new Map<string, Served>();
  const carrier = makeCarrier(carriedTo(methods, log), peerOf);
  const schedule = fairScheduler();
  for (const { definition, handlers } of services) {
    const implementation = Object.entries(definition).map(([name, method]) => {
      const handler = handlers[name] as (request: unknown, context: CallContext) => Promise<unknown>;
      const handle = handleThrough(interceptors, async (call) => {
        const { principal, requestId, signal, deadline, maxReplyBytes } = call;
        const context = {
          principal,
          caller: call.peer.name,
          requestId,
          signal,
          deadline,
          maxReplyBytes,
          log: log.child({ requestId }),
        };
        const reply = await handler(call.request, context);
        const bytes = await serializeReply(method, reply, (work) => schedule(principal.organizationId, work));
        if (bytes.length > maxReplyBytes)
          throw new ServiceError('REPLY_TOO_LARGE', undefined, { facts: { bytes: bytes.length } });
        return bytes;
      });
      const served: Served = { ...method, handle: handle as Served['handle'], options: methodOptionsOf(method.path) };
      methods.set(method.path, served);
      return [name, unary(served, carrier, peerOf, log)];
    });
    server.addService(withSerializedReplies(definition) as never, Object.fromEntries(implementation));
  }
  server.addService(CallsServiceService, { carry: carrier.carry });
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync(listen, tls, (error, bound) =>
      error ? reject(addressFault(identity.name, listen, error)) : resolve(bound),
    );
  });
  return {
    address: `${listen.slice(0, listen.lastIndexOf(':'))}:${port}`,
    drain: (graceMs) => drain(server, carrier, graceMs).finally(tls.close),
  };
}

function drain(server: Server, carrier: Carrier, graceMs: number): Promise<void> {
  return new Promise((resolve) => {
    carrier.goAway();
    const timer = setTimeout(() => server.forceShutdown(), graceMs);
    server.tryShutdown(() => {
      clearTimeout(timer);
      resolve();
    });
  });
}

/** Replies are serialized by our handlers, not by grpc-js, because their size decides whether they are sent. */
const withSerializedReplies = (definition: ServiceDefinition): object =>
  Object.fromEntries(
    Object.entries(definition).map(([name, method]) => [
      name,
      { ...method, responseSerialize: (bytes: Buffer) => bytes },
    ]),
  );

/** A method and what handles its calls. */
interface Served {
  path: string;
  options: MethodOptions;
  requestDeserialize(bytes: Buffer): unknown;
  /** Resolves to the serialized reply. */
  handle(call: Call): Promise<Uint8Array>;
}

/** Makes a Call of a call that a stream carries. */
const carriedTo =
  (methods: ReadonlyMap<string, Served>, log: Log) =>
  ({ method, request, principal, requestId, maxReplyBytes, ...carried }: CarriedCall): Promise<Uint8Array> => {
    const served = methods.get(method);
    if (!served) return Promise.reject(new ServiceError('INTERNAL'));
    const { path, options, handle, requestDeserialize } = served;
    return handle({
      ...carried,
      path,
      options,
      request: requestDeserialize(request),
      requestId: requestId || newId(),
      maxReplyBytes: maxReplyBytes || Number.POSITIVE_INFINITY,
      principal: principalOf(principal),
      log,
    });
  };

/** Adapts `handle` to grpc-js: makes a Call of its unary call, and its reply of the outcome. */
function unary(
  { path, options, handle }: Served,
  carrier: Carrier,
  peerOf: (call: ServerCall) => Peer,
  log: Log,
): handleUnaryCall<unknown, unknown> {
  return (call, reply) => {
    const aborter = new AbortController();
    onCancelled(call, carrier, (reason) => aborter.abort(reason));
    handle({
      path,
      options,
      request: call.request,
      peer: peerOf(call),
      principal: principalOf(call.metadata.get(PRINCIPAL)[0] as Buffer),
      requestId: firstValue(call.metadata, REQUEST_ID) || newId(),
      signal: aborter.signal,
      deadline: deadlineOf(call, options),
      maxReplyBytes: Number(call.metadata.get(MAX_REPLY_BYTES)[0] ?? Number.POSITIVE_INFINITY),
      log,
    }).then(
      (response) => reply(null, response),
      (error: ServiceError) => reply(toGrpcError(error)),
    );
  };
}

/**
 * Calls `notify` when the call is cancelled. grpc-js reports a cancellation by the caller and a lost connection in the
 * same way. Of a caller that also has a stream, the stream is lost together with the connection: hence setImmediate.
 */
function onCancelled(
  call: ServerUnaryCall<unknown, unknown>,
  carrier: Carrier,
  notify: (reason: string | undefined) => void,
): void {
  const connection = call.getPeer();
  const hadStream = carrier.hasStream(connection);
  call.on('cancelled', () =>
    setImmediate(() => notify(hadStream && !carrier.hasStream(connection) ? CALLER_LOST : undefined)),
  );
}

/** Nobody, whom no method takes, when the caller sent no readable principal. */
function principalOf(bytes: Buffer): Principal {
  try {
    return Principal.decode(bytes);
  } catch {
    return Principal.decode(new Uint8Array());
  }
}

const firstValue = (metadata: Metadata, key: string): string => String(metadata.get(key)[0] ?? '');

function deadlineOf(call: ServerUnaryCall<unknown, unknown>, options: MethodOptions): number {
  const deadline = Number(call.getDeadline());
  return Number.isFinite(deadline) ? deadline : Date.now() + options.deadlineMs;
}
