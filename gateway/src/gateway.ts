import { AuthServiceService } from 'proto/auth/v1/auth.ts';
import { strict as assert } from 'node:assert';
import { setTimeout as delay } from 'node:timers/promises';
import { clientOf, openConnection, type Connection } from 'platform/rpc/client.ts';
import type { ConfigOf } from 'platform/core/config.ts';
import { restMethods } from './contract/rest-methods.ts';
import { openIdentity } from 'platform/rpc/identity.ts';
import { makeOpenWork } from 'platform/rpc/open-work.ts';
import { identityFiles, type ProcessStart, type Running } from 'platform/service/process.ts';
import { settingOf } from 'platform/core/processes.ts';
import { ServiceError } from 'platform/core/errors.ts';
import { CERTIFICATE_ENDS, readConnections, readEngine } from 'platform/service/metrics.ts';
import { openMetrics, reading } from 'platform/telemetry/metrics.ts';
import { StartError } from 'platform/core/start-error.ts';
import { EXPECTED_REPLY_BYTES, makeAdmit } from './policies/admit.ts';
import { makeAuthenticate } from './policies/authenticate.ts';
import { makeCallService } from './policies/call-service.ts';
import { audiences, LISTEN, METRICS_LISTEN, type config as declaration } from './config.ts';
import { countRequests, HTTP_METRICS } from './http/metrics.ts';
import { errorReply, idsOf } from './http/errors.ts';
import type { GatewayRequest } from './http/exchange.ts';
import { makeFindRoute } from './policies/find-route.ts';
import { probes } from './http/probes.ts';
import { sendReply } from './http/reply.ts';
import { traceRequests } from './http/traced-requests.ts';
import { openTls, tlsFiles } from './http/tls.ts';
import { makeByteBudget } from './http/byte-budget.ts';
import { serveHttp } from './http/server.ts';
import { hostPipeline } from './host/plugin.ts';
import { openJsonReader } from './json/json-reader.ts';
import { contractRoutes } from './openapi/contract-routes.ts';
import { openDenials } from './limits/denials.ts';
import { makeRateCounters } from './limits/rate-counters.ts';
import { aloneStore, openRateStore } from './limits/rate-stores.ts';
import { makeStrangers } from './limits/strangers.ts';
import { makeUnderWay } from './limits/under-way.ts';
import { makeLimitRates } from './policies/limit-rates.ts';
import { makeReadBody } from './policies/read-body.ts';
import { makeRouteTable, serviceRoutes } from './contract/routes.ts';

/**
 * Mounts the policies in express-gateway and listens.
 * @param methods those that have routes, by default as the protos say
 * @throws StartError when the address is taken, its certificate cannot be read or there is no memory for the largest
 * body
 */
export async function startGateway(
  { config, log, clock, instanceId }: ProcessStart<ConfigOf<typeof declaration>>,
  methods = restMethods(),
): Promise<Running> {
  const settings = config as Record<string, unknown> & typeof config;
  requireRoom(config);
  const files = tlsFiles(config.GATEWAY_TLS_CERT_FILE, config.GATEWAY_TLS_KEY_FILE);
  const tls = files && openTls(files, log);
  let isDraining = false;
  const identity = openIdentity({ name: 'gateway', ...identityFiles('gateway', config), log });
  const metrics = await openMetrics('gateway', String(settings[METRICS_LISTEN]), HTTP_METRICS, log);
  const counted = countRequests(metrics);
  const connections = new Map<string, Connection>(
    audiences().map((audience) => [
      audience,
      openConnection({ address: String(settings[settingOf(audience, 'ADDRESS')]), audience, identity }),
    ]),
  );
  for (const [audience, connection] of connections) readConnections(metrics, audience, connection);
  const calls = new Map(Array.from(connections, ([audience, { call }]) => [audience, call]));
  const auth = clientOf(AuthServiceService, (connections.get('auth') as Connection).call);
  const counters = makeRateCounters(await openRateStore({ config, instanceId, identity, auth }), clock, log);
  readEngine(metrics, 'rates', config.REDIS_URL === '' ? 'auth' : 'Redis', async () => assert(!counters.isLost()));
  metrics.read(() => [
    reading(CERTIFICATE_ENDS, { certificate: 'own' }, identity.endsAt() / 1e3),
    ...(tls ? [reading(CERTIFICATE_ENDS, { certificate: 'clients' }, tls.endsAt() / 1e3)] : []),
  ]);
  const ownCounters = makeRateCounters(aloneStore(clock), clock, log);
  const denials = openDenials(auth, clock, log);
  const routes = makeRouteTable([
    ...probes(() => isDraining),
    ...contractRoutes(methods, config.PUBLIC_URL),
    ...serviceRoutes(methods),
  ]);
  const work = makeOpenWork();
  const stops = new Set<() => void>();
  const report = (error: unknown, { exchange }: GatewayRequest): string => {
    const { status, code, body } = errorReply(error, idsOf(exchange), log);
    Object.assign(exchange, { code, endedWith: status });
    return body!;
  };
  const budget = makeByteBudget({ totalBytes: config.BYTES_IN_FLIGHT, tokenBytes: config.BYTES_IN_FLIGHT_PER_TOKEN });
  const json = openJsonReader();
  const urls = { publicUrl: config.PUBLIC_URL, trustedProxies: config.TRUSTED_PROXIES };

  const handle = await hostPipeline(
    {
      'find-route': makeFindRoute(routes),
      authenticate: makeAuthenticate(
        auth,
        makeStrangers(counters, ownCounters, config.STRANGER_REQUESTS_PER_MINUTE),
        config.TRUSTED_PROXIES,
        counted,
      ),
      'limit-rates': makeLimitRates({
        counters,
        denials,
        rates: { requests: config.REQUESTS_PER_MINUTE, runs: config.RUNS_PER_MINUTE },
        underWay: makeUnderWay({ perToken: config.REQUESTS_AT_ONCE, perOrganization: 2 * config.REQUESTS_AT_ONCE }),
      }),
      admit: makeAdmit(budget, config.MAX_BODY_BYTES),
      'read-body': makeReadBody(json, { maxBytes: config.MAX_BODY_BYTES, timeoutMs: config.BODY_TIMEOUT_MS }),
      'call-service': makeCallService({ calls, work, urls, streams: { stops, isStopping: () => isDraining, report } }),
    },
    (error, req, res) => {
      if (error instanceof ServiceError && ['RATE_LIMITED', 'TOO_MANY_REQUESTS'].includes(error.reason))
        counted?.limited(String(error.facts.limit));
      return sendReply(req, res, errorReply(error, idsOf(req.exchange), log));
    },
  );
  const corsOrigins = new Set(config.CORS_ORIGINS.split(',').filter((origin) => origin !== ''));
  const server = await serveHttp(traceRequests(handle, config.TRACES_ASKED_PER_MINUTE), {
    listen: String(settings[LISTEN]),
    corsOrigins,
    timeoutMs: config.BODY_TIMEOUT_MS,
    stallMs: config.READ_TIMEOUT_MS,
    firstByteMs: config.FIRST_BYTE_TIMEOUT_MS,
    connections: {
      max: config.MAX_CONNECTIONS,
      // behind proxies, every connection comes from their addresses
      maxPerAddress: config.TRUSTED_PROXIES > 0 ? config.MAX_CONNECTIONS : config.CONNECTIONS_PER_ADDRESS,
    },
    allow: routes.allow,
    tls,
    metrics: counted,
    log,
  });

  return {
    address: server.address,
    async stop() {
      isDraining = true;
      for (const stop of stops) stop();
      const deadline = Date.now() + config.DRAIN_MS;
      await server.drain({
        listenMs: config.LISTEN_WHILE_UNREADY_MS,
        idleMs: config.KEEP_IDLE_MS,
        graceMs: config.DRAIN_MS,
      });
      // calls that continue without their client
      await Promise.race([work.ended(), delay(Math.max(0, deadline - Date.now()), undefined, { ref: false })]);
      counters.close();
      ownCounters.close();
      await denials.close();
      for (const connection of connections.values()) connection.close();
      identity.close();
      tls?.close();
      await json.close();
      await metrics.close();
    },
  };
}

/**
 * Without this room, the largest body would be answered 503 for ever. One organization gets half of BYTES_IN_FLIGHT.
 */
function requireRoom(config: ConfigOf<typeof declaration>): void {
  const needed = config.MAX_BODY_BYTES + EXPECTED_REPLY_BYTES;
  for (const [name, least] of [
    ['BYTES_IN_FLIGHT', 2 * needed],
    ['BYTES_IN_FLIGHT_PER_TOKEN', needed],
  ] as const)
    if (config[name] < least)
      throw new StartError(
        `${name} is ${config[name]}, but MAX_BODY_BYTES ${config.MAX_BODY_BYTES} needs at least ${least}`,
      );
}
