import type { IncomingMessage, ServerResponse } from 'node:http';
import { createRequire } from 'node:module';

/** What every request pays to express-gateway without using it, taken out. Figures in gateway/README.md. */

export type Next = (error?: unknown) => void;
export interface Application {
  (req: IncomingMessage, res: ServerResponse, done: Next): void;
  use(...middleware: unknown[]): void;
  _router: { stack: { name: string }[] };
}

/**
 * Before express-gateway is loaded. It makes an id with a deprecated Buffer constructor for each request, which none of our
 * policies reads, and lets passport hang eight properties on it.
 */
export function tuneBeforeLoad(require: NodeJS.Require): void {
  const fromHost = createRequire(require.resolve('express-gateway'));
  (fromHost('uuid62') as { v4(): string }).v4 = () => '';
  (fromHost('passport') as { initialize(): unknown }).initialize = () => (_req: unknown, _res: unknown, next: Next) =>
    next();
}

/** Its log lines are for its own policies and loader; what concerns us it throws. */
export function quiet(require: NodeJS.Require): void {
  const loggers = require('express-gateway/lib/logger') as Record<
    string,
    { silent?: boolean } | ((label: string) => unknown)
  >;
  for (const logger of Object.values(loggers)) if (typeof logger === 'object') logger.silent = true;
}

/**
 * Express's first two layers parse the query and change the prototype of every request and reply, which slows all later
 * access to them. Our policies use node's own request and reply.
 */
export function tuneApplication(app: Application): void {
  app._router.stack = app._router.stack.filter(({ name }) => name !== 'query' && name !== 'expressInit');
}
