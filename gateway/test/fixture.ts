import { connect } from 'node:net';
import { join } from 'node:path';
import { AgentsServiceService } from 'proto/agents/v1/agents.ts';
import { AuthServiceService, type Attempt, type Decision, type Denial } from 'proto/auth/v1/auth.ts';
import { MemoryServiceService } from 'proto/memory/v1/memory.ts';
import type { BoundHandlers, BoundService, ServiceDefinition } from 'platform/rpc/call.ts';
import { systemClock, type Clock } from 'platform/core/clock.ts';
import { readConfig } from 'platform/core/config.ts';
import { ServiceError } from 'platform/core/errors.ts';
import { openIdentity } from 'platform/rpc/identity.ts';
import { createKeys, identityFilesOf } from 'platform/rpc/keys.ts';
import { makeLog } from 'platform/core/log.ts';
import { tlsSettings, type Running } from 'platform/service/process.ts';
import { startServer, type RunningServer } from 'platform/rpc/server.ts';
import { serverToken, temporaryFolder } from 'platform/service/testing.ts';
import { closedInTheEnd } from 'platform/service/test-end.ts';
import { toStatus } from 'platform/rpc/wire-errors.ts';
import { makeRateBoard } from '../../services/auth/src/rates/board.ts';
import { shareRates } from '../../services/auth/src/rates/share-rates.ts';
import { HIGH_RATES } from '../../test/support/high-rates.ts';
import { config } from '../src/config.ts';
import { restMethods, type RestMethod } from '../src/contract/rest-methods.ts';
import { startGateway } from '../src/gateway.ts';

export const log = makeLog('gateway', 'silent');
export const TOKEN = 'good';
export const PRINCIPAL = serverToken('organization-1');

/** Handlers of the services that the gateway calls, run by real gRPC servers. Every other method answers 404. */
export interface ServiceStubs {
  auth?: Pick<Partial<BoundHandlers<typeof AuthServiceService>>, 'getJwks'>;
  memory?: Partial<BoundHandlers<typeof MemoryServiceService>>;
  agents?: Partial<BoundHandlers<typeof AgentsServiceService>>;
  /** Methods that the contract does not have: how memory serves them, and their routes. */
  more?: { services: readonly BoundService[]; methods: readonly RestMethod[] };
  /** Decides about a token; by default only TOKEN is valid. */
  decide?(attempt: Attempt): ServiceError | typeof PRINCIPAL;
  /** Called with every batch of attempts before it is decided; a promise delays the decisions. */
  onBatch?(attempts: Attempt[]): void | Promise<void>;
  /** Called with what the gateway reports to the audit trail. */
  onDenials?(denials: Denial[]): void;
  /** Of the gateway, and of auth's counts of requests. */
  clock?: Clock;
}
export interface GatewayFixture {
  url: string;
  port: number;
  gateway: Running;
  services: Record<'auth' | 'agents' | 'memory', RunningServer>;
  /**
   * Sends a request, by default with the valid token (`token: ''` sends none). A body that is not a string is sent as
   * JSON.
   */
  request(
    path: string,
    options?: {
      method?: string;
      token?: string | undefined;
      headers?: Record<string, string>;
      body?: unknown;
      signal?: AbortSignal;
    },
  ): Promise<{ status: number; headers: Headers; json: Record<string, unknown>; text: string }>;
  stop(): Promise<void>;
}

const notFound = () => Promise.reject(new ServiceError('NOT_FOUND'));
function allHandlers<D extends ServiceDefinition>(definition: D, given: Partial<BoundHandlers<D>>): BoundHandlers<D> {
  const none = Object.fromEntries(Object.keys(definition).map((name) => [name, notFound]));
  return { ...none, ...given } as BoundHandlers<D>;
}

export async function startGatewayFixture(
  stubs: ServiceStubs,
  env: Record<string, string> = {},
): Promise<GatewayFixture> {
  const folder = temporaryFolder();
  const keys = join(folder.path, 'keys');
  await createKeys(keys, ['gateway', 'auth', 'agents', 'memory']);
  const serve = <D extends ServiceDefinition>(
    name: string,
    definition: D,
    given: Partial<BoundHandlers<D>>,
    more: readonly BoundService[] = [],
  ) =>
    startServer({
      listen: '127.0.0.1:0',
      identity: openIdentity({ name, ...identityFilesOf(keys, name) }),
      log,
      services: [{ definition, handlers: allHandlers(definition, given) }, ...more],
    });

  const decide = stubs.decide ?? (({ bearer }) => (bearer === TOKEN ? PRINCIPAL : new ServiceError('UNAUTHENTICATED')));
  const decisionOn = (attempt: Attempt): Decision => {
    const decided = decide(attempt);
    return decided instanceof ServiceError
      ? { principal: undefined, denial: toStatus(decided) }
      : { principal: decided, denial: undefined };
  };
  const rates = makeRateBoard();
  const { clock = systemClock } = stubs;
  const services = {
    auth: await serve('auth', AuthServiceService, {
      ...stubs.auth,
      shareRates: (request) => shareRates({ rates, clock }, request),
      recordDenials: async ({ denials }) => {
        stubs.onDenials?.(denials);
        return {};
      },
      authenticate: async ({ attempts }) => {
        await stubs.onBatch?.(attempts);
        return { decisions: attempts.map(decisionOn) };
      },
    }),
    agents: await serve('agents', AgentsServiceService, stubs.agents ?? {}),
    memory: await serve('memory', MemoryServiceService, stubs.memory ?? {}, stubs.more?.services),
  };
  const addresses = Object.fromEntries(
    Object.entries(services).map(([name, { address }]) => [`${name.toUpperCase()}_ADDRESS`, address]),
  );
  const settings = readConfig(config, {
    ...tlsSettings(keys, 'gateway'),
    GATEWAY_LISTEN: '127.0.0.1:0',
    ...addresses,
    ...HIGH_RATES,
    ...env,
  });
  const stopServices = async () => {
    await Promise.all(Object.values(services).map((server) => server.drain(0)));
    folder.remove();
  };
  const methods = [...restMethods(), ...(stubs.more?.methods ?? [])];
  const gateway = await startGateway({ config: settings, log, clock, instanceId: 'test' }, methods).catch(
    async (error: unknown) => {
      await stopServices();
      throw error;
    },
  );
  const url = `http://${gateway.address}`;

  return {
    url,
    port: Number(new URL(url).port),
    gateway,
    services,
    async request(path, { method = 'GET', token = TOKEN, headers = {}, body, signal } = {}) {
      const sent = body === undefined || typeof body === 'string' ? body : JSON.stringify(body);
      const response = await fetch(url + path, {
        method,
        body: sent as string,
        signal: signal ?? null,
        headers: {
          ...(token !== '' && { authorization: `Bearer ${token}` }),
          ...(sent !== undefined && { 'content-type': 'application/json' }),
          ...headers,
        },
      });
      const text = await response.text();
      return {
        status: response.status,
        headers: response.headers,
        text,
        json: text.startsWith('{') ? (JSON.parse(text) as Record<string, unknown>) : {},
      };
    },
    stop: closedInTheEnd(async () => {
      await gateway.stop();
      await stopServices();
    }),
  };
}

/** Writes bytes to a new connection and reads until the gateway closes it. */
export function raw(port: number, ...pieces: (string | Buffer)[]): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const socket = connect(port, '127.0.0.1', () => {
    for (const piece of pieces) socket.write(piece);
  });
  let received = '';
  socket.on('data', (chunk) => {
    received += chunk.toString();
  });
  socket.on('close', () => resolve(received));
  socket.on('error', (error) => (received === '' ? reject(error) : resolve(received)));
  return promise;
}

/** Status, lower-case headers and JSON body of one raw reply. */
export function parseRaw(reply: string): {
  status: number;
  headers: Map<string, string>;
  json: Record<string, unknown>;
} {
  const split = reply.indexOf('\r\n\r\n');
  const [first, ...lines] = reply.slice(0, split).split('\r\n') as [string, ...string[]];
  const headers = new Map(
    lines.map((line) => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 2)]),
  );
  return {
    status: Number(first.split(' ')[1]),
    headers,
    json: JSON.parse(reply.slice(split + 4)) as Record<string, unknown>,
  };
}
