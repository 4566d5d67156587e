import { chmodSync, chownSync, mkdirSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { PROCESSES } from 'platform/core/processes.ts';
import { RELEASE } from 'platform/core/release.ts';
import { temporaryFolder } from 'platform/service/testing.ts';
import { freeAddresses } from '../support/addresses.ts';
import { runToEnd } from '../support/run-process.ts';
import { REPOSITORY } from '../support/stack.ts';

const MAIN_FILES: Record<string, readonly string[]> = {
  launcher: ['launcher/src/main.js'],
  admin: ['admin/src/main.ts', 'keys', 'create'],
  ...Object.fromEntries(
    Object.keys(PROCESSES).map((name) => [name, [`${name === 'gateway' ? name : `services/${name}`}/src/main.ts`]]),
  ),
};
const ROOT_UID = 0;

describe('a data folder that is not safe is refused with one sentence, and nothing is written in it', () => {
  const temporary = temporaryFolder();
  const folder = (name: string, mode: number): string => {
    const path = join(temporary.path, name);
    mkdirSync(path);
    chmodSync(path, mode);
    return path;
  };
  /** Of another user: only root can make one, and everybody else finds one. */
  function foreignFolder(): string {
    if (process.getuid!() !== ROOT_UID) return '/usr/share';
    const path = folder('foreign', 0o700);
    chownSync(path, 12_345, 12_345);
    return path;
  }
  const foreign = foreignFolder();
  const shared = [folder('of-the-group', 0o770), folder('of-everybody', 0o707)];
  afterAll(() => temporary.remove());

  const outcomeOf = async (program: string, DATA_DIR: string) => {
    const [file, ...args] = MAIN_FILES[program]!;
    const { code, stderr } = await runToEnd(process.execPath, [join(REPOSITORY, file!), ...args], {
      env: { DATA_DIR },
    });
    return { code, sentence: stderr.replace(/^(The start failed|\w+): /, '') };
  };

  it.each(Object.keys(MAIN_FILES))('by the %s', async (program) => {
    const before = readdirSync(foreign);
    expect(await outcomeOf(program, foreign)).toEqual({
      code: 1,
      sentence: `The folder ${foreign} belongs to another user (uid ${statSync(foreign).uid}): use one of your own\n`,
    });
    expect(readdirSync(foreign)).toEqual(before);
    for (const path of shared) {
      expect(await outcomeOf(program, path)).toEqual({
        code: 1,
        sentence: `Other users can write in the folder ${path}: run chmod go-w on it\n`,
      });
      expect(readdirSync(path)).toEqual([]);
    }
  });

  it('by the launcher when its keys are in such a folder', async () => {
    const path = folder('outer', 0o755);
    mkdirSync(join(path, 'keys'));
    chmodSync(join(path, 'keys'), 0o777);
    expect(await outcomeOf('launcher', path)).toEqual({
      code: 1,
      sentence: `Other users can write in the folder ${join(path, 'keys')}: run chmod go-w on it\n`,
    });
  });
});

describe('a data folder that a far later release has written', () => {
  const temporary = temporaryFolder();
  afterAll(() => temporary.remove());

  it('is refused by npm start with the releases in a sentence', async () => {
    const file = join(temporary.path, 'memory.db');
    const later = new DatabaseSync(file);
    later.exec('PRAGMA user_version = 999000000');
    later.close();
    const { code, stderr } = await runToEnd(process.execPath, [join(REPOSITORY, MAIN_FILES.launcher![0]!)], {
      env: { ...(await freeAddresses()), DATA_DIR: temporary.path },
    });
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: expect.stringMatching(
        new RegExp(
          `^memory: cannot open ${file}: release 999.0.0 has written it, and this is release ${RELEASE}, ` +
            'which opens files of releases up to \\d+\\.\\d+\\n$',
        ),
      ),
    });
  });
});
