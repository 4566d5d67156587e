import { execFile } from 'node:child_process';
import { cpSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { CreditsServiceService } from 'proto/credits/v1/credits.ts';
import { newId } from 'platform/core/ids.ts';
import { createKeys } from 'platform/rpc/keys.ts';
import { PROCESSES } from 'platform/core/processes.ts';
import { operator, OPERATOR, startProgram, temporaryFolder, type RunningProgram } from 'platform/service/testing.ts';
import { program } from '../src/service.ts';
import { deleteKeys } from '../../../test/support/shared-engines.ts';
import { urlOf } from './redis-harness.ts';

const [REDIS_URL, MONGODB_URL] = [urlOf('REDIS_URL'), urlOf('MONGODB_URL')];
const folder = temporaryFolder();
const names: string[] = [];
afterAll(async () => {
  const redis = new Redis(REDIS_URL);
  for (const name of names) await deleteKeys(redis, `${name}:*`);
  redis.disconnect();
  folder.remove();
});

/** A new MongoDB database and folders for replicas, which keep the ledger in Redis when `redis` is true. */
function installation() {
  const name = `t${newId().slice(-12)}`;
  names.push(name);
  const folderOf = (replica: string): string => {
    const path = join(folder.path, name, replica);
    mkdirSync(path, { recursive: true });
    return path;
  };
  const settings = (replica: string, redis = false): Record<string, string> => ({
    DATA_DIR: folderOf(replica),
    MONGODB_URL,
    MONGODB_DATABASE: name,
    REDIS_KEY_PREFIX: name,
    ...(redis && { REDIS_URL }),
  });
  return {
    folderOf,
    settings,
    start: (replica: string, redis?: boolean) => startProgram(program, settings(replica, redis)),
  };
}

const startErrorOf = (starting: Promise<RunningProgram>): Promise<string> =>
  starting.then(
    async (running) => {
      await running.stop();
      return 'it started';
    },
    (error: Error) => `${error.name}: ${error.message}`,
  );

const organizationId = newId();
const LEDGER_IS_IN = 'The credit ledger of this MongoDB database is kept in';
const granted = async (running: RunningProgram): Promise<number> =>
  (await running.client(CreditsServiceService, OPERATOR).getBalance({}, running.as(operator(organizationId)))).account!
    .grantedMicros;
const grant = (running: RunningProgram, amountMicros: number) =>
  running
    .client(CreditsServiceService, OPERATOR)
    .grant({ id: newId(), amountMicros, note: '' }, running.as(operator(organizationId)));

describe('the ledger beside MongoDB is kept in one place', () => {
  it('in the first file, even when it is moved: a replica with a file of its own does not start', async () => {
    const { folderOf, settings, start } = installation();
    const first = await start('a');
    await grant(first, 100);
    const another = new RegExp(
      `^StartError: ${LEDGER_IS_IN} another file, \\S+:\\S+/a/credits\\.db: ` +
        'several replicas of credits share one ledger by REDIS_URL$',
    );
    for (let round = 0; round < 2; round++) expect(await startErrorOf(start('b'))).toMatch(another);
    await first.stop();
    expect(await startErrorOf(start('b'))).toMatch(another);
    cpSync(folderOf('a'), folderOf('moved'), { recursive: true });
    const moved = await startProgram(program, settings('moved'));
    expect(await granted(moved)).toBe(100);
    await moved.stop();
  });

  it('in one of two files when two replicas start for the first time at the same moment', async () => {
    const { start } = installation();
    const outcomes = await Promise.allSettled(['a', 'b', 'c', 'd'].map((replica) => start(replica)));
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    for (const outcome of outcomes) {
      if (outcome.status === 'fulfilled') await outcome.value.stop();
      else
        expect(outcome.reason).toMatchObject({
          name: 'StartError',
          message: expect.stringContaining('is kept in another file'),
        });
    }
  });

  it('in Redis once it was there: the service does not start without REDIS_URL', async () => {
    const { start } = installation();
    const first = await start('a', true);
    await grant(first, 100);
    await first.stop();
    expect(await startErrorOf(start('a'))).toBe(
      `StartError: ${LEDGER_IS_IN} Redis: ` + 'set REDIS_URL, without it the balances would start from nothing',
    );
    const again = await start('b', true);
    expect(await granted(again)).toBe(100);
    await again.stop();
  });

  it('in a file once it was there: with REDIS_URL the process prints one sentence and exits with code 1', async () => {
    const { folderOf, settings, start } = installation();
    await (await start('a')).stop();
    const keys = join(folderOf('a'), 'keys');
    await createKeys(keys, [...Object.keys(PROCESSES), OPERATOR]);
    const env = { ...process.env, NODE_OPTIONS: '', CREDITS_LISTEN: '127.0.0.1:0', ...settings('a', true) };
    const ended = await new Promise((resolve) => {
      const child = execFile(
        process.execPath,
        [join(import.meta.dirname, '../src/main.ts')],
        { env },
        (_error, stdout, stderr) => resolve({ code: child.exitCode, stdout, stderr }),
      );
    });
    expect(ended).toEqual({
      code: 1,
      stdout: '',
      stderr: expect.stringMatching(
        new RegExp(
          `^credits: ${LEDGER_IS_IN} the file \\S+/a/credits\\.db: ` +
            'leave REDIS_URL out, in Redis the balances would start from nothing\n$',
        ),
      ),
    });
  });
});
