import { logVerbosity, Server, setLogVerbosity } from '@grpc/grpc-js';
import { X509Certificate } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { HealthService } from 'proto/grpc/health/v1/health.ts';
import { CallsServiceService } from 'proto/platform/v1/calls.ts';
import { ServiceError } from '../core/errors.ts';
import { fairScheduler } from '../core/fair-scheduler.ts';
import type { Log } from '../core/log.ts';
import { addressFault } from '../core/start-error.ts';
import type { BoundService, CallContext, ServiceDefinition } from './call.ts';
import { makeCarrier } from './call-carrier.ts';
import { handleThrough, type Call, type Interceptor } from './handle.ts';
import { makeHealth, serveHealth } from './health.ts';
import type { Identity, Peer } from './identity.ts';
import { MAX_REQUEST_BYTES } from './incoming-requests.ts';
import { requireAccess } from './interceptors/access.ts';
import { identifyCaller } from './interceptors/caller.ts';
import { requireTimeLeft } from './interceptors/deadline.ts';
import { noteDenials, type DeniedRequest } from './interceptors/denials.ts';
import { logCalls } from './interceptors/log.ts';
import { tellCalls, type OnCall } from './interceptors/tell-calls.ts';
import { traceCalls } from './interceptors/trace.ts';
import { methodOptionsOf } from './method-options.ts';
import { makeOpenWork } from './open-work.ts';
import { sendReplies } from './send-replies.ts';
import { serializeReply } from './serialize-reply.ts';
import { carriedTo, serverStreaming, unary, type GrpcCall, type Served } from './served.ts';
import { ServerTlsCredentials } from './tls-credentials.ts';

export interface RunningServer {
  /** host:port that it listens on. */
  address: string;
  /** host:port at which it tells its health without TLS; undefined: nowhere. */
  healthAddress: string | undefined;
  /**
   * Accepts no new calls, waits up to graceMs for the running ones, also for those whose caller is lost, then cancels
   * them. Those of repeatable methods that stream replies end after half of that time, so that their callers go on at
   * another replica.
   */
  drain(graceMs: number): Promise<void>;
}

export interface ServerOptions {
  listen: string;
  /** host:port at which it tells its health without TLS, too; absent or empty: nowhere. */
  healthListen?: string;
  identity: Identity;
  log: Log;
  services: readonly BoundService[];
  /** Called for every request that a handler denied. */
  onDenied?(denied: DeniedRequest): void;
  /** Told of every call. */
  onCall?: OnCall | undefined;
}

// grpc-js prints nothing: the errors that we log and throw say the same.
setLogVerbosity(logVerbosity.NONE);

/** How often a server that drains looks for connections that it has just got. */
const SWEEP_MS = 100;
/** A connection whose TLS handshake never ends cannot be cut, so a drain waits no longer for those that it has cut. */
const CUT_MS = 1_000;

/**
 * How long callers may take to hear that the process stops, before their connections are told. HTTP/2 refuses calls
 * that are on their way then, and of a large one grpc-js may say that writing failed, so that its outcome is unknown.
 */
const HEARD_MS = 3_000;

type Handler = (request: unknown, context: CallContext) => Promise<unknown> | AsyncIterable<unknown>;

/**
 * Serves gRPC: every call of every service goes through the same interceptors to its handler.
 * @throws StartError when the address cannot be bound
 */
export async function startServer(options: ServerOptions): Promise<RunningServer> {
  const { listen, healthListen = '', identity, log, services, onDenied = () => undefined, onCall } = options;
  const work = makeOpenWork();
  const told = onCall ? [tellCalls(onCall)] : [];
  const checks = [identifyCaller, requireTimeLeft, requireAccess, noteDenials(onDenied)];
  const counted: Interceptor = (_call, next) => work.during(next);
  const interceptors = [counted, ...told, traceCalls, logCalls, ...checks];
  const peerOf = (call: GrpcCall): Peer => {
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
  const stops = new Set<() => void>();
  for (const { definition, handlers } of services) {
    const implementation = Object.entries(definition).flatMap(([name, method]) => {
      const handler = handlers[name] as Handler;
      const serialize = async ({ principal, maxReplyBytes }: Call, reply: unknown): Promise<Buffer> => {
        const bytes = await serializeReply(method, reply, (work) => schedule(principal.organizationId, work));
        if (bytes.length > maxReplyBytes)
          throw new ServiceError('REPLY_TOO_LARGE', undefined, { facts: { bytes: bytes.length } });
        return bytes;
      };
      const answer = async (call: Call) => serialize(call, await handler(call.request, contextOf(call, call.signal)));
      const answerStreaming = (call: Call) =>
        sendReplies(
          call,
          (signal) => handler(call.requests ?? call.request, contextOf(call, signal)) as AsyncIterable<unknown>,
          async (reply) => call.send!(await serialize(call, reply)),
          stops,
        );
      const served: Served = {
        ...method,
        handle: handleThrough(interceptors, method.responseStream ? answerStreaming : answer) as Served['handle'],
        options: methodOptionsOf(method.path),
      };
      methods.set(method.path, served);
      if (method.requestStream) return [];
      return [[name, (method.responseStream ? serverStreaming : unary)(served, carrier, peerOf, log)]];
    });
    server.addService(ofGrpcCalls(definition) as never, Object.fromEntries(implementation));
  }
  server.addService(CallsServiceService, { carry: carrier.carry });
  const health = makeHealth([...new Set(Array.from(methods.keys(), (path) => path.split('/')[1] as string))]);
  server.addService(HealthService, { ...health.handlers });
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync(listen, tls, (error, bound) =>
      error ? reject(addressFault(identity.name, listen, error)) : resolve(bound),
    );
  });
  const plain =
    healthListen === ''
      ? undefined
      : await serveHealth(identity.name, healthListen, health).catch((error: unknown) => {
          server.forceShutdown();
          throw error;
        });
  const address = `${listen.slice(0, listen.lastIndexOf(':'))}:${port}`;
  return {
    address,
    healthAddress: plain?.address,
    async drain(graceMs) {
      health.stop();
      const graceEnds = delay(graceMs, undefined, { ref: false });
      const halfway = setTimeout(() => [...stops].forEach((stop) => stop()), graceMs / 2);
      await Promise.race([carrier.goAway(), delay(Math.min(HEARD_MS, graceMs / 2), undefined, { ref: false })]);
      // tryShutdown also waits for connections that are being made when it is called, but closes only those it has
      const sweep = setInterval(() => server.drain(address, graceMs), SWEEP_MS);
      const closed = new Promise<void>((resolve) => server.tryShutdown(() => resolve()));
      await Promise.race([closed.then(() => work.ended()), graceEnds]);
      clearTimeout(halfway);
      clearInterval(sweep);
      server.forceShutdown();
      await Promise.race([closed, delay(CUT_MS, undefined, { ref: false })]);
      tls.close();
      plain?.close();
    },
  };
}

const contextOf = (
  { principal, peer, requestId, deadline, maxReplyBytes }: Call,
  signal: AbortSignal,
): CallContext => ({ principal, caller: peer.name, requestId, signal, deadline, maxReplyBytes });

/**
 * The methods that take gRPC calls of their own. Streams alone carry bidirectional calls: grpc-js tells a handler that
 * its call was cancelled only when the handler reads on. Replies are serialized by our handlers, not by grpc-js,
 * because their size decides whether they are sent.
 */
const ofGrpcCalls = (definition: ServiceDefinition): object =>
  Object.fromEntries(
    Object.entries(definition)
      .filter(([, method]) => !method.requestStream)
      .map(([name, method]) => [name, { ...method, responseSerialize: (bytes: Buffer) => bytes }]),
  );
