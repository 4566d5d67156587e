import { cpSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { AuthServiceService } from 'proto/auth/v1/auth.ts';
import { newId } from 'platform/core/ids.ts';
import { servicePrincipal } from 'platform/core/principal.ts';
import { clientOf, openConnection } from 'platform/rpc/client.ts';
import { RELOAD_MS } from 'platform/core/followed-files.ts';
import { openIdentity } from 'platform/rpc/identity.ts';
import { finishRotation, identityFilesOf, keyFolderOf, rotateKeys } from 'platform/rpc/keys.ts';
import { eventually } from 'platform/service/test-end.ts';
import { temporaryFolder } from 'platform/service/testing.ts';
import { expectNothingLost, printCounts } from '../support/nothing-lost.ts';
import { startLoad } from '../support/load.ts';
import { LOAD_AGENTS, SHORT_LEASES } from '../support/load-settings.ts';
import { startStack, type Stack } from '../support/stack.ts';

const CLIENTS = 4;
const ACKNOWLEDGED = 20;

describe('rotation of the certificates of every process on two replicas', () => {
  const before = temporaryFolder();
  let stack: Stack;
  let folders: [string, string];
  beforeAll(async () => {
    stack = await startStack({ env: SHORT_LEASES });
    folders = [keyFolderOf(stack.folder), keyFolderOf(join(stack.folder, 'replica'))];
    cpSync(folders[0], before.path, { recursive: true });
  });
  afterAll(async () => {
    await stack.stop();
    before.remove();
  });

  async function authenticateWith(folder: string): Promise<unknown> {
    const identity = openIdentity({ name: 'gateway', ...identityFilesOf(folder, 'gateway') });
    const { call, close } = openConnection({ address: stack.env.AUTH_LISTEN as string, audience: 'auth', identity });
    return clientOf(AuthServiceService, call)
      .authenticate({ attempts: [] }, { principal: servicePrincipal('gateway'), requestId: newId() })
      .finally(() => {
        close();
        identity.close();
      });
  }

  it('under load and without a restart, loses nothing, fails nothing, and leaves the old keys without any effect', async () => {
    const tenant = await stack.tenant({ credits: 10_000, agents: LOAD_AGENTS });
    const pids = () => Object.fromEntries(['gateway', 'memory'].map((name) => [name, stack.pidsOf(name as 'memory')]));
    const started = pids();
    // a call that is refused leads to 500 or 503, which fails the load
    const load = await startLoad({ baseUrl: stack.baseUrls, token: tenant.token, clients: CLIENTS });
    await load.untilAcknowledged(ACKNOWLEDGED);

    await rotateKeys(folders[0], []);
    await load.untilAcknowledged(ACKNOWLEDGED);
    stack.publishKeys();
    // what "keys rotate --finish" waits for in its own folder
    await eventually(() => Date.now() - statSync(join(folders[1], 'gateway.pem')).mtimeMs > 3 * RELOAD_MS);
    await load.untilAcknowledged(ACKNOWLEDGED);
    await expect(authenticateWith(before.path)).resolves.toEqual({ decisions: [] });
    await finishRotation(folders[0]);
    stack.publishKeys();
    await load.untilAcknowledged(ACKNOWLEDGED);
    await load.stop();

    printCounts('keys rotated', await expectNothingLost(stack, tenant, load));
    expect(pids()).toEqual(started);
    const refused = () =>
      authenticateWith(before.path).then(
        () => false,
        ({ reason }: { reason: string }) => reason === 'UNAVAILABLE',
      );
    await eventually(refused);
    await expect(authenticateWith(folders[0])).resolves.toEqual({ decisions: [] });
    expect(readFileSync(join(folders[1], 'ca.crt'))).toEqual(readFileSync(join(folders[0], 'ca.crt')));
  });
});
