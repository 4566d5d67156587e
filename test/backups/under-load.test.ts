import { join } from 'node:path';
import { temporaryFolder } from 'platform/service/testing.ts';
import { keyFolderOf, masterKeyFileOf } from 'platform/rpc/keys.ts';
import { commandLine } from '../admin/admin-command.ts';
import { failedRequests } from '../support/failed-requests.ts';
import { noteLoad } from '../support/load-as-of.ts';
import { ENDLESS, LOAD_AGENTS, SHORT_LEASES } from '../support/load-settings.ts';
import { startLoad } from '../support/load.ts';
import type { ProcessResult } from '../support/run-process.ts';
import { expectNothingLost, printCounts } from '../support/nothing-lost.ts';
import { startStack } from '../support/stack.ts';

const BACKUPS = Number(process.env['BACKUP_COUNT'] ?? 2);
const CLIENTS = 4;
const ACKNOWLEDGED = 100;
const LONG_MS = 900_000;

it(
  'each backup that is made under load restores to what was acknowledged before, and to nothing that is half there',
  async () => {
    const backups = temporaryFolder();
    const stack = await startStack({ env: SHORT_LEASES });
    const tenant = await stack.tenant({ credits: 10_000, agents: LOAD_AGENTS });
    const load = await startLoad({ baseUrl: stack.baseUrls, token: tenant.token, clients: CLIENTS });
    const admin = commandLine(stack.env);
    // one that runs at every backup
    const endless = load.run(ENDLESS, { n: 1 });
    const made = [];
    for (let n = 1; n <= BACKUPS; n++) {
      await load.untilAcknowledged(ACKNOWLEDGED);
      const [asOf, from] = [noteLoad(load), performance.now()];
      const folder = join(backups.path, String(n));
      const { lockedMs } = JSON.parse((await succeeded(admin(`--json backup ${folder}`))).stdout) as {
        lockedMs: number;
      };
      made.push({ folder, asOf, lockedMs, seconds: (performance.now() - from) / 1_000 });
    }
    await load.stop();
    // nobody was refused for the sake of a backup
    expect(failedRequests(load, stack.outputs())).toEqual([]);
    const slowestMs = Math.max(...load.sent.map(({ tookMs }) => tookMs));

    const masterKey = masterKeyFileOf(keyFolderOf(stack.folder));
    for (const { folder } of made)
      await succeeded(admin(`restore ${folder} ${folder}-restored --master-key ${masterKey}`));
    await stack.stop();
    await endless;
    for (const [index, { folder, asOf, lockedMs, seconds }] of made.entries()) {
      const copy = await startStack({ env: SHORT_LEASES, folder: `${folder}-restored` });
      const counts = await expectNothingLost(copy, tenant, asOf());
      printCounts(`backup ${index + 1} took ${seconds.toFixed(1)} s and held up writes for ${lockedMs.toFixed(1)} ms`, {
        ...counts,
        slowestMs,
      });
      await copy.stop();
    }
    backups.remove();
  },
  LONG_MS,
);

async function succeeded(running: Promise<ProcessResult>): Promise<ProcessResult> {
  const result = await running;
  if (result.code !== 0) throw new Error(result.stderr);
  return result;
}
