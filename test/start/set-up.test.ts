import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { keyFolderOf } from 'platform/rpc/keys.ts';
import { StartError } from 'platform/core/start-error.ts';
import { temporaryFolder } from 'platform/service/testing.ts';
import { startSetUp } from '../../launcher/src/set-up-process.ts';
import { childrenOf, commandOf } from '../support/process-tree.ts';

describe('the process that makes keys and seeds', () => {
  const folder = temporaryFolder();
  const keys = keyFolderOf(folder.path);
  afterAll(() => folder.remove());

  const setUps = (): number[] => childrenOf(process.pid).filter((pid) => commandOf(pid).includes('/set-up.ts'));

  it('makes the keys, and ends when it is told to', async () => {
    const setUp = startSetUp(process.env, () => undefined);
    expect(await setUp.createKeys(keys)).toEqual([]);
    expect(existsSync(join(keys, 'ca.crt'))).toBe(true);
    await setUp.end();
    expect(setUps()).toEqual([]);
  });

  it('says why the keys could not be made', async () => {
    const setUp = startSetUp(process.env, () => undefined);
    const failing = setUp.createKeys(join(keys, 'ca.crt', 'keys'));
    await expect(failing).rejects.toThrow(StartError);
    await expect(failing).rejects.toThrow(/ca\.crt/);
    await setUp.end();
  });

  it('an end that nobody asked for is told as what it was, also to who asks later', async () => {
    const setUp = startSetUp(process.env, () => undefined);
    await setUp.createKeys(keys);
    for (const pid of setUps()) process.kill(pid, 'SIGKILL');
    await setUp.end();
    await expect(setUp.createKeys(keys)).rejects.toThrow('The set-up ended (SIGKILL)');
  });
});
