/** A process that upgrades a file and is killed by itself before the last statement. Argument: file. */
import { DatabaseSync } from 'node:sqlite';
import { openSqliteStore } from 'platform/store/sqlite/store.ts';
import { ITEMS } from './store-suite.ts';

const { exec } = DatabaseSync.prototype;
DatabaseSync.prototype.exec = function (this: DatabaseSync, sql: string) {
  if (sql === 'COMMIT') process.kill(process.pid, 'SIGKILL');
  exec.call(this, sql);
};
await openSqliteStore(process.argv[2]!, [ITEMS]);
