import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { JobServiceService } from 'proto/platform/v1/jobs.ts';
import type { CallOptions, ServiceClient, ServiceDefinition } from '../rpc/call.ts';
import { clientOf, openConnection } from '../rpc/client.ts';
import { systemClock, type Clock } from '../core/clock.ts';
import { readConfig, type ConfigOf, type Declaration } from '../core/config.ts';
import { makeFolder } from '../core/folder.ts';
import { openIdentity } from '../rpc/identity.ts';
import { newId } from '../core/ids.ts';
import { sumOfRounds } from '../jobs/job-service.ts';
import { createKeys, identityFilesOf, keyFolderOf, masterKeyFileOf } from '../rpc/keys.ts';
import { operatorName } from '../rpc/peer-name.ts';
import { makeLog } from '../core/log.ts';
import { Principal } from '../core/principal.ts';
import { PROCESSES, settingOf } from '../core/processes.ts';
import { tlsSettings } from './process.ts';
import { declarationOf, type Program } from './program.ts';
import { startService } from './run.ts';
import { closedInTheEnd } from './test-end.ts';

export const OPERATOR = 'operator:test';

/** Makes an empty folder; `remove` deletes it. */
export function temporaryFolder(): { path: string; remove(): void } {
  const path = mkdtempSync(join(tmpdir(), 'aks-'));
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
}

/**
 * Fills a folder with keys of all processes, the operator of this user and OPERATOR. A test run makes them once
 * (TEST_KEYS names their folder), because that takes each file of tests a quarter of a second.
 */
export async function layOutKeys(folder: string): Promise<void> {
  const made = process.env.TEST_KEYS;
  if (made === undefined) return void (await createKeys(folder, [...Object.keys(PROCESSES), operatorName(), OPERATOR]));
  makeFolder(folder);
  for (const file of readdirSync(made)) copyFileSync(join(made, file), join(folder, file));
}

/** A principal for tests: every field that is not given is empty. */
export const principalWith = (given: Partial<Principal>): Principal => ({
  ...Principal.decode(new Uint8Array()),
  ...given,
});
export const serverToken = (organizationId: string, given: Partial<Principal> = {}): Principal =>
  principalWith({
    kind: 'SERVER_TOKEN',
    organizationId,
    subject: newId(),
    name: 'test token',
    tier: 'enterprise',
    ...given,
  });
export const operator = (organizationId = ''): Principal =>
  principalWith({ kind: 'OPERATOR', organizationId, subject: 'test', name: 'test' });

export interface RunningProgram {
  /** host:port of every replica, comma-separated. */
  address: string;
  folder: string;
  /** A real gRPC client that calls as the named process. */
  client<D extends ServiceDefinition>(definition: D, caller: string): ServiceClient<D>;
  /** Options of one call for a principal. */
  as(principal: Principal, given?: Partial<CallOptions>): CallOptions;
  /** Asks every replica, since a job runs only on the one that holds its lease. */
  runJob(name: string): Promise<{ ran: boolean; count: number }>;
  /** Stops and starts it again on the same data. */
  restart(): Promise<void>;
  /** Stops it and removes its folder. */
  stop(): Promise<void>;
}

/**
 * A real service in this process: real gRPC on a free port, real SQLite files in a folder of its own.
 * @param replicas number of replicas; more than one need the servers that `env` names. Calls go to them in turn
 */
export async function startProgram<D extends Declaration, Deps>(
  program: Program<D, Deps>,
  env: Record<string, string> = {},
  clock: Clock = systemClock,
  replicas = 1,
): Promise<RunningProgram> {
  const folder = temporaryFolder();
  const keys = keyFolderOf(folder.path);
  await layOutKeys(keys);
  const log = makeLog(program.name, env.LOG_LEVEL ?? 'silent');
  const given = {
    EVENTS_FILE: join(folder.path, 'events.db'),
    ...tlsSettings(keys, program.name),
    MASTER_KEY_FILE: masterKeyFileOf(keys),
    [settingOf(program.name, 'LISTEN')]: '127.0.0.1:0',
    ...env,
  };
  const startReplica = (dataDir: string) => {
    mkdirSync(dataDir, { recursive: true });
    return startService(program, {
      config: readConfig(declarationOf(program), { DATA_DIR: dataDir, ...given }) as unknown as ConfigOf<D> & never,
      log,
      clock,
      instanceId: newId(),
    });
  };
  const start = () =>
    Promise.all(
      Array.from({ length: replicas }, (_, index) =>
        startReplica(index === 0 ? folder.path : join(folder.path, `replica-${index}`)),
      ),
    );
  let running = await start();
  const addressOf = () => running.map(({ address }) => address).join(',');
  const connections: { close(): void }[] = [];
  const clientAt = <S extends ServiceDefinition>(address: string, definition: S, caller: string) => {
    const identity = openIdentity({ name: caller, ...identityFilesOf(keys, caller) });
    const connection = openConnection({ address, audience: program.name, identity });
    connections.push(connection, identity);
    return clientOf(definition, connection.call);
  };
  const client: RunningProgram['client'] = (definition, caller) => clientAt(addressOf(), definition, caller);
  const as: RunningProgram['as'] = (principal, options = {}) => ({ principal, requestId: newId(), ...options });
  const close = async () => {
    for (const connection of connections.splice(0)) connection.close();
    await Promise.all(running.map(({ stop }) => stop()));
  };
  return {
    get address() {
      return addressOf();
    },
    folder: folder.path,
    client,
    as,
    async runJob(name) {
      return sumOfRounds(
        await Promise.all(
          running.map(({ address }) => clientAt(address, JobServiceService, OPERATOR).runJob({ name }, as(operator()))),
        ),
      );
    },
    async restart() {
      await close();
      running = await start();
    },
    stop: closedInTheEnd(async () => {
      await close();
      folder.remove();
    }),
  };
}
