import { createServer } from 'node:net';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { DatabaseSync, type StatementSync } from 'node:sqlite';

/**
 * Counts the work of a process of the product from outside: Node imports it before the program
 * (NODE_OPTIONS=--import=…/preload.ts?folder=…). Whoever connects to <folder>/<pid>.sock gets the counts as JSON.
 */
const counts = { commits: 0, calls: 0, messages: 0 };

/** A statement that changes something without a transaction of its own is a commit, too. */
const CHANGES = /^\s*(INSERT|UPDATE|DELETE|REPLACE)\b/i;
const COMMIT = /\bCOMMIT\b/i;

function countRuns(db: DatabaseSync, sql: string, statement: StatementSync): StatementSync {
  const isCommit = COMMIT.test(sql);
  if (!isCommit && !CHANGES.test(sql)) return statement;
  for (const method of ['run', 'get', 'all'] as const) {
    const original = statement[method].bind(statement) as (...values: unknown[]) => unknown;
    Object.defineProperty(statement, method, {
      value: (...values: unknown[]) => {
        if (isCommit || !db.isTransaction) counts.commits += 1;
        return original(...values);
      },
    });
  }
  return statement;
}

const { prepare, exec } = DatabaseSync.prototype;
DatabaseSync.prototype.prepare = function (this: DatabaseSync, sql: string, ...options: never[]) {
  return countRuns(this, sql, prepare.call(this, sql, ...options));
};
DatabaseSync.prototype.exec = function (this: DatabaseSync, sql: string) {
  if (COMMIT.test(sql)) counts.commits += 1;
  exec.call(this, sql);
};

interface Stream {
  on(event: 'data', listener: (message: { calls: readonly unknown[] }) => void): void;
  write(message: unknown): boolean;
}
type Method = (call: Stream, reply: unknown) => void;

/** Calls are counted by the process that serves them: those of a stream in its messages, and unary ones. */
function counted(name: string, method: Method): Method {
  if (name !== 'carry')
    return (call, reply) => {
      counts.calls += 1;
      method(call, reply);
    };
  return (stream, reply) => {
    const write = stream.write.bind(stream);
    stream.write = (message) => {
      counts.messages += 1;
      return write(message);
    };
    method(stream, reply);
    stream.on('data', ({ calls }) => {
      counts.messages += 1;
      counts.calls += calls.length;
    });
  };
}

const { Server } = createRequire(import.meta.url)('@grpc/grpc-js') as {
  Server: { prototype: { addService(definition: object, methods: Record<string, Method>): void } };
};
const { addService } = Server.prototype;
Server.prototype.addService = function (definition, methods) {
  const entries = Object.entries(methods).map(([name, method]) => [name, counted(name, method)] as const);
  addService.call(this, definition, Object.fromEntries(entries));
};

const folder = new URL(import.meta.url).searchParams.get('folder') as string;
createServer((socket) => socket.end(JSON.stringify(counts)))
  .listen(join(folder, `${process.pid}.sock`))
  .unref();
