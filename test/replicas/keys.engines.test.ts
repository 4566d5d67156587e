import { copyFileSync, cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { AuthServiceService } from 'proto/auth/v1/auth.ts';
import { clientOf, openConnection } from 'platform/rpc/client.ts';
import { openIdentity } from 'platform/rpc/identity.ts';
import { newId } from 'platform/core/ids.ts';
import { createKeys, keyFileOf, keyFolderOf, peersFileOf, type Peers } from 'platform/rpc/keys.ts';
import { servicePrincipal } from 'platform/core/principal.ts';
import { PROCESSES, type ProcessName } from 'platform/core/processes.ts';
import { temporaryFolder } from 'platform/service/testing.ts';
import { expectNothingLost, printCounts } from '../support/nothing-lost.ts';
import { startLoad, type Load } from '../support/load.ts';
import { LOAD_AGENTS, SHORT_LEASES } from '../support/load-settings.ts';
import { eventually } from 'platform/service/test-end.ts';
import { startStack, type Stack } from '../support/stack.ts';

const NAMES = Object.keys(PROCESSES) as ProcessName[];
const CLIENTS = 4;
const ACKNOWLEDGED = 20;

describe('rotation of the keys of every process on two replicas at once', () => {
  const keys = { old: temporaryFolder(), new: temporaryFolder() };
  let stack: Stack;
  let folders: string[];
  beforeAll(async () => {
    stack = await startStack({ env: SHORT_LEASES });
    folders = [stack.folder, join(stack.folder, 'replica')].map(keyFolderOf);
    cpSync(folders[0] as string, keys.old.path, { recursive: true });
    createKeys(keys.new.path, NAMES);
  });
  afterAll(async () => {
    await stack.stop();
    for (const { remove } of Object.values(keys)) remove();
  });

  const peersOf = (folder: string): Peers => JSON.parse(readFileSync(peersFileOf(folder), 'utf8')) as Peers;

  /** Writes the peers file, which every process reads at its next start. */
  function publishPeers(keysOf: (name: ProcessName) => string[]): void {
    const peers = { ...peersOf(keys.old.path), ...Object.fromEntries(NAMES.map((name) => [name, keysOf(name)])) };
    for (const folder of folders) writeFileSync(peersFileOf(folder), JSON.stringify(peers));
  }

  /** Restarts all processes at once; clients whose request fails wait until all are back. */
  async function restartAll(load: Load): Promise<void> {
    const back = Promise.withResolvers<void>();
    void load.pauseDuring(back.promise);
    const printed = stack.outputs().map(({ length }) => length);
    for (const pid of NAMES.flatMap((name) => stack.pidsOf(name))) process.kill(pid, 'SIGTERM');
    await eventually(() =>
      stack
        .outputs()
        .every((output, replica) => NAMES.every((name) => output.slice(printed[replica]).includes(`${name} is back`))),
    ).finally(back.resolve);
  }

  async function authenticateWith(folder: string): Promise<unknown> {
    const identity = openIdentity({
      name: 'gateway',
      keyFile: keyFileOf(folder, 'gateway'),
      peersFile: peersFileOf(folders[0] as string),
    });
    const { call, close } = openConnection({ address: stack.env.AUTH_LISTEN as string, audience: 'auth', identity });
    return clientOf(AuthServiceService, call)
      .authenticate({ attempts: [] }, { principal: servicePrincipal('gateway'), requestId: newId() })
      .finally(close);
  }

  it('under load, loses nothing, does nothing twice, and leaves the old keys without any effect', async () => {
    const [before, after] = [peersOf(keys.old.path), peersOf(keys.new.path)];
    const tenant = await stack.tenant({ credits: 10_000, agents: LOAD_AGENTS });
    // a call of an unknown process leads to 500, which fails the load
    const load = await startLoad({ baseUrl: stack.baseUrls, token: tenant.token, clients: CLIENTS });
    await load.untilAcknowledged(ACKNOWLEDGED);

    publishPeers((name) => [...(after[name] as string[]), ...(before[name] as string[])]);
    await restartAll(load);
    await load.untilAcknowledged(ACKNOWLEDGED);
    for (const folder of folders)
      for (const name of NAMES) copyFileSync(keyFileOf(keys.new.path, name), keyFileOf(folder, name));
    await restartAll(load);
    await load.untilAcknowledged(ACKNOWLEDGED);
    publishPeers((name) => after[name] as string[]);
    await restartAll(load);
    await load.untilAcknowledged(ACKNOWLEDGED);
    await load.stop();

    printCounts('keys rotated', await expectNothingLost(stack, tenant, load));
    await expect(authenticateWith(keys.old.path)).rejects.toMatchObject({ reason: 'UNAUTHENTICATED' });
    await expect(authenticateWith(keys.new.path)).resolves.toEqual({ decisions: [] });
  });
});
