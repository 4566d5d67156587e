import { newId } from 'platform/core/ids.ts';
import { identityFilesOf, keyFolderOf } from 'platform/rpc/keys.ts';
import { operatorName } from 'platform/rpc/peer-name.ts';
import { sharedStack } from '../support/shared-stack.ts';
import type { RunningStack } from '../support/stack.ts';
import { commandLine, json, printed, sentence, type CommandLine } from './admin-command.ts';

describe('bootstrap', () => {
  let stack: RunningStack;
  let admin: CommandLine;
  const name = `first-${newId()}`;
  beforeAll(async () => {
    stack = await sharedStack();
    // as a pod has it: the certificate is a mounted secret, and the data folder does not exist
    const { certFile, keyFile, caFile } = identityFilesOf(keyFolderOf(stack.folder), operatorName());
    const mounted = { TLS_CERT_FILE: certFile, TLS_KEY_FILE: keyFile, TLS_CA_FILE: caFile };
    admin = commandLine({ ...stack.env, ...mounted, DATA_DIR: '/nonexistent/data' });
  });
  const on = (words: string) => admin(`--json --organization ${name} ${words}`);

  it('creates the organization, its administrator and its credits once, however often it runs', async () => {
    const words = `--json bootstrap ${name} ada@first.example --tier professional --credits 7.5`;
    const made = await json(admin(words));
    expect(made).toEqual({ organization: name, id: expect.any(String), changed: true });
    expect(await json(admin(words))).toEqual(made);
    expect(await json(admin('--json organization list'))).toContainEqual(
      expect.objectContaining({ id: made.id, name, tier: 'professional' }),
    );
    expect(await json(on('user list'))).toEqual([
      expect.objectContaining({ email: 'ada@first.example', name: 'ada', roles: ['admin', 'security_admin'] }),
    ]);
    expect(await json(on('credits balance'))).toMatchObject({ grantedMicros: 7_500_000, sequence: 1 });
    expect(await json(on('--as ada@first.example token list'))).toEqual([]);
  });

  it('completes what an earlier one did not come to', async () => {
    const other = `second-${newId()}`;
    await printed(admin(`organization create ${other}`));
    await printed(admin(`bootstrap ${other} eva@second.example`));
    expect(await json(admin(`--json --organization ${other} user list`))).toHaveLength(1);
  });

  it('refuses what is no amount before it creates anything', async () => {
    const other = `third-${newId()}`;
    expect(await sentence(admin(`bootstrap ${other} eva@third.example --credits many`), 2)).toBe(
      'many is not an amount of credits',
    );
    expect(await json(admin('--json organization list'))).not.toContainEqual(expect.objectContaining({ name: other }));
  });
});
