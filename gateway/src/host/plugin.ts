import { strict as assert } from 'node:assert';
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { ServiceError } from 'platform/core/errors.ts';
import type { GatewayRequest, Policy } from '../http/exchange.ts';
import { quiet, tuneApplication, tuneBeforeLoad, type Application, type Next } from './tuning.ts';

/** The policies of gateway.config.yml's one pipeline, in its order. */
const PIPELINE = ['find-route', 'authenticate', 'read-body', 'call-service'] as const;
export type PolicyName = (typeof PIPELINE)[number];

/** Answers a request whose policy threw. */
export type ErrorHandler = (error: unknown, req: GatewayRequest, res: ServerResponse) => Promise<void>;

const CONFIG_FILE = join(import.meta.dirname, '../../config/gateway.config.yml');
const PROBE = Symbol('probe');
type Probe = { [PROBE]?: string[] };

/**
 * express-gateway as the host of our policies: its configuration, pipeline and router; none of its built-in policies, admin
 * API, identity database, plugin loader, config watch or listening socket. This file and tuning.ts alone know it; 1.16.11 is
 * its last release, so the deep paths stay.
 * @throws AssertionError when the pipeline is not ours, in order
 */
export async function hostPipeline(
  policies: Record<PolicyName, Policy>,
  onError: ErrorHandler,
  configFile = CONFIG_FILE,
): Promise<RequestListener> {
  const require = createRequire(import.meta.url);
  tuneBeforeLoad(require);
  quiet(require);
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
  // without an http section it mounts everything and leaves the listening to us
  await (require('express-gateway/lib/gateway') as (options: object) => Promise<unknown>)({ plugins, config });
  // it would mount a changed configuration while running; nothing changes ours
  (require('express-gateway/lib/eventBus') as NodeJS.EventEmitter).removeAllListeners('hot-reload');
  assert.ok(application, 'express-gateway made no application');
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

/** Express 4 neither awaits a middleware nor takes every thrown value for an error: a rejection would hang its request. */
function guarded(name: string, policy: Policy) {
  return (req: GatewayRequest & Probe, res: ServerResponse, next: Next): void => {
    if (req[PROBE]) {
      req[PROBE].push(name);
      return next();
    }
    const run = async () => policy(req, res, () => next());
    run().catch((thrown: unknown) =>
      next(thrown instanceof Error ? thrown : new Error('a policy threw what is not an Error', { cause: thrown })),
    );
  };
}

/** Sends a request through the mounted pipeline that each policy only signs. */
function mountedOrder(app: Application): readonly string[] {
  const signed: string[] = [];
  app({ method: 'GET', url: '/probe', headers: {}, [PROBE]: signed } as never, {} as never, () => undefined);
  return signed;
}
