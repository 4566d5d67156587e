import { generateKeyPairSync } from 'node:crypto';
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { AuthServiceService } from 'proto/auth/v1/auth.ts';
import { PROCESSES } from 'platform/core/processes.ts';
import { keyFolderOf } from 'platform/rpc/keys.ts';
import { openOperator } from 'platform/rpc/operator.ts';
import { operatorName } from 'platform/rpc/peer-name.ts';
import { temporaryFolder } from 'platform/service/testing.ts';
import { freeAddresses } from '../support/addresses.ts';
import { exitOf } from '../support/run-process.ts';
import { launch, untilPrinted } from '../support/stack.ts';

/** The folder "keys" as the release before made it: an Ed25519 key for each process and operator, and peers.json. */
function makeSigningKeys(folder: string, names: readonly string[]): void {
  mkdirSync(folder, { mode: 0o700 });
  const peers = names.map((name) => {
    const { privateKey, publicKey } = generateKeyPairSync('ed25519', {
      privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
      publicKeyEncoding: { type: 'spki', format: 'pem' },
    });
    writeFileSync(join(folder, `${name.replace(':', '-')}.key`), privateKey, { mode: 0o600 });
    return [name, [publicKey]];
  });
  writeFileSync(join(folder, 'peers.json'), JSON.stringify(Object.fromEntries(peers)), { mode: 0o600 });
}

it('a data folder of a version before 0.1.0 starts with certificates, also for its other operators, and says so once', async () => {
  const folder = temporaryFolder();
  const keys = keyFolderOf(folder.path);
  makeSigningKeys(keys, [...Object.keys(PROCESSES), operatorName(), 'operator:ada']);
  const env = { ...(await freeAddresses()), DATA_DIR: folder.path };
  const { launcher, output } = launch(env);
  await untilPrinted(launcher, output, 'Ctrl-C stops it');
  expect(output().match(/^Certificates replace .* 8 files .*$/gm)).toHaveLength(1);
  expect(readdirSync(keys).filter((file) => /\.key$|\.json$/.test(file))).toEqual([]);
  for (const name of [operatorName(), 'operator:ada']) {
    const operator = openOperator({ name, keyFolder: keys, addresses: env });
    const { organizations } = await operator
      .client(AuthServiceService, 'auth')
      .listOrganizations({ pageSize: 10, afterName: '' }, operator.as());
    expect(organizations.map((organization) => organization.name)).toEqual(['demo']);
    operator.close();
  }
  launcher.kill('SIGTERM');
  await exitOf(launcher);
  folder.remove();
});
