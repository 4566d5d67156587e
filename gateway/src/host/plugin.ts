import { strict as assert } from 'node:assert';
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { ServiceError } from 'platform/core/errors.ts';
import type { GatewayRequest, Policy } from '../http/exchange.ts';
import { silenceLoggers, tuneApplication, tuneBeforeLoad, type Application, type Next } from './tuning.ts';

/** The policies of the only pipeline of gateway.config.yml, in order. */
const PIPELINE = ['find-route', 'authenticate', 'limit-rates', 'admit', 'read-body', 'call-service'] as const;
export type PolicyName = (typeof PIPELINE)[number];

/** Replies to a request whose policy threw. */
export type ErrorHandler = (error: unknown, req: GatewayRequest, res: ServerResponse) => Promise<void>;

const CONFIG_FILE = join(import.meta.dirname, '../../config/gateway.config.yml');
const PROBE = Symbol('probe');
type Probe = { [PROBE]?: string[] };

/**
 * Mounts our policies in express-gateway. Uses its configuration, pipeline and router, but not its built-in policies,
 * admin API, identity database, plugin loader, config watch or listening socket. Only this file and tuning.ts import
 * it, by deep paths: 1.16.11 is its last release, so they cannot change.
 * @throws AssertionError unless the configuration mounts exactly our policies, in order
 */
export async function hostPipeline(
  policies: Record<PolicyName, Policy>,
  onError: ErrorHandler,
  configFile = CONFIG_FILE,
): Promise<RequestListener> {
  const require = createRequire(import.meta.url);
  tuneBeforeLoad(require);
  silenceLoggers(require);
  const registry = require('express-gateway/lib/policies') as { register(policy: object): void };
  for (const name of PIPELINE) {
    registry.register({
      name,
      schema: { $id: `policies/${name}.json`, type: 'object' },
      policy: () => guarded(name, policies[name]),
    });
  }
  const config = require('express-gateway/lib/config') as {
    gatewayConfigPath: string;
    loadGatewayConfig(): void;
    watch(): void;
  };
  config.gatewayConfigPath = configFile;
  config.watch = () => undefined;
  config.loadGatewayConfig();

  let application: Application | undefined;
  const plugins = {
    policies: [],
    conditions: [],
    gatewayRoutes: [
      (app: Application) => {
        application = app;
      },
    ],
  };
  // without an http section in the configuration it mounts the pipeline but does not listen
  await (require('express-gateway/lib/gateway') as (options: object) => Promise<unknown>)({ plugins, config });
  // our configuration never changes while the gateway runs
  (require('express-gateway/lib/eventBus') as NodeJS.EventEmitter).removeAllListeners('hot-reload');
  assert.ok(application, 'express-gateway did not create an application');
  const app = application;
  app.use((_req: IncomingMessage, _res: ServerResponse, next: Next) => next(new ServiceError('NOT_FOUND')));
  app.use(
    (error: unknown, req: GatewayRequest, res: ServerResponse, _next: Next) =>
      void onError(error, req, res).catch(() => res.destroy()),
  );
  tuneApplication(app);
  assert.deepEqual(mountedOrder(app), PIPELINE, 'the pipeline of gateway.config.yml is not the expected one');
  return (req, res) => app(req, res, () => res.destroy());
}

/**
 * Passes whatever a policy throws to the error handler. Express 4 does not await a middleware and does not treat every
 * thrown value as an error, so a rejection would leave the request without a reply.
 */
function guarded(name: string, policy: Policy) {
  return (req: GatewayRequest & Probe, res: ServerResponse, next: Next): void => {
    if (req[PROBE]) {
      req[PROBE].push(name);
      return next();
    }
    const run = async () => policy(req, res, () => next());
    run().catch((thrown: unknown) =>
      next(
        thrown instanceof Error ? thrown : new Error('a policy threw a value that is not an Error', { cause: thrown }),
      ),
    );
  };
}

/** Sends a probe request through the mounted pipeline, to which each policy only adds its name. */
function mountedOrder(app: Application): readonly string[] {
  const visited: string[] = [];
  app({ method: 'GET', url: '/probe', headers: {}, [PROBE]: visited } as never, {} as never, () => undefined);
  return visited;
}
