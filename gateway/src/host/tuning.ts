import type { IncomingMessage, ServerResponse } from 'node:http';
import { createRequire } from 'node:module';

// Removes work that express-gateway does for every request and that our policies do not use. gateway/README.md has
// figures.

export type Next = (error?: unknown) => void;
export interface Application {
  (req: IncomingMessage, res: ServerResponse, done: Next): void;
  use(...middleware: unknown[]): void;
  _router: { stack: { name: string }[] };
}

/**
 * Call it before express-gateway is loaded. For each request express-gateway makes a context, whose prototype has an
 * id from a deprecated Buffer constructor, and passport adds eight properties to the request; our policies use neither.
 * For each new prototype V8 makes hidden classes that stay until the next full collection: all contexts get one.
 */
export function tuneBeforeLoad(require: NodeJS.Require): void {
  const contextFile = require.resolve('express-gateway/lib/gateway/context');
  require(contextFile);
  const prototype = {};
  require.cache[contextFile]!.exports = function EgContextBase() {
    return prototype;
  };
  const fromHost = createRequire(require.resolve('express-gateway'));
  (fromHost('passport') as { initialize(): unknown }).initialize = () => (_req: unknown, _res: unknown, next: Next) =>
    next();
}

/** Silences its loggers: their lines are about its own policies and loader. Errors that concern us are thrown. */
export function silenceLoggers(require: NodeJS.Require): void {
  const loggers = require('express-gateway/lib/logger') as Record<
    string,
    { silent?: boolean } | ((label: string) => unknown)
  >;
  for (const logger of Object.values(loggers)) if (typeof logger === 'object') logger.silent = true;
}

/**
 * Removes Express's first two layers. They parse the query and change the prototype of every request and response,
 * which slows down all later access to them. Our policies use node's own request and response.
 */
export function tuneApplication(app: Application): void {
  app._router.stack = app._router.stack.filter(({ name }) => name !== 'query' && name !== 'expressInit');
}
