import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { temporaryFolder } from 'platform/service/testing.ts';
import { freeAddresses } from '../support/addresses.ts';
import { exitOf } from '../support/run-process.ts';
import { launch, untilPrinted } from '../support/stack.ts';

describe('npm start -- --help, by which npm ci fills the compile cache', () => {
  const folder = temporaryFolder();
  afterAll(() => folder.remove());

  it('compiles for the options of V8 with which the processes start', async () => {
    const cache = join(folder.path, 'cache');
    const env = { ...(await freeAddresses()), DATA_DIR: join(folder.path, 'data'), NODE_COMPILE_CACHE: cache };
    await exitOf(launch(env, ['--help']).launcher);
    const filled = readdirSync(cache);
    // Node makes one for each set of options: here one for the launcher, and one for what it starts
    expect(filled).toHaveLength(2);
    const { launcher, output } = launch(env);
    await untilPrinted(launcher, output, 'Ctrl-C stops it');
    expect(readdirSync(cache)).toEqual(filled);
    launcher.kill('SIGTERM');
    await exitOf(launcher);
    expect(readdirSync(cache)).toEqual(filled);
  });
});
