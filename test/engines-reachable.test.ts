import { spawnSync } from 'node:child_process';
import { relative } from 'node:path';
import { NO_ENGINES } from './support/shared-engines.ts';
import { REPOSITORY } from './support/stack.ts';

const UNUSED_ADDRESS = '127.0.0.1:1';

/** Runs `npm run test:engines` with only these engine URLs. */
function testEngines(env: Record<string, string>, ...args: string[]) {
  const { stdout, stderr, status } = spawnSync('npm', ['run', '--silent', 'test:engines', '--', ...args], {
    cwd: REPOSITORY,
    env: { ...process.env, ...NO_ENGINES, ...env },
    encoding: 'utf8',
  });
  return { stdout, stderr, status };
}
function listed(env: Record<string, string>): { files: string[]; untested: string[] } {
  const { stdout, stderr } = testEngines(env, '--listTests');
  return {
    files: stdout
      .trim()
      .split('\n')
      .map((file) => relative(REPOSITORY, file)),
    untested: stderr.split('\n').filter((line) => line.includes('NOT tested')),
  };
}

describe('npm run test:engines', () => {
  it('runs no test when a server does not answer, or when no URL is set', () => {
    const unreachable = testEngines({ REDIS_URL: `redis://${UNUSED_ADDRESS}` }, 'redis-start');
    expect(unreachable.stderr).toContain(
      'REDIS_URL names a server that does not answer; npm run engines -- status tells what runs',
    );
    expect({ status: unreachable.status, ran: /Tests: /.test(unreachable.stderr) }).toEqual({ status: 1, ran: false });
    const none = testEngines({}, 'redis-start');
    expect(none.stderr).toContain(
      'Set MONGODB_URL, REDIS_URL, KAFKA_BROKERS: npm run engines -- up starts the servers and prints them.',
    );
    expect(none.status).not.toBe(0);
  });

  it('lists what it does not test when a URL is not set, and tests the rest', () => {
    const all = listed({ MONGODB_URL: UNUSED_ADDRESS, REDIS_URL: UNUSED_ADDRESS, KAFKA_BROKERS: UNUSED_ADDRESS });
    expect(all.untested).toEqual([]);
    const [mongodb, redis] = [listed({ MONGODB_URL: UNUSED_ADDRESS }), listed({ REDIS_URL: UNUSED_ADDRESS })];
    const without = (name: string, rest: readonly string[]) =>
      all.files.filter((file) => !rest.includes(file) && file.includes(name));
    expect(
      mongodb.files.filter((file) =>
        /\/(redis|ledger-redis|kafka[-.])|outages\.engines|rebuild|read-your-writes|clocks|jobs\.|keys\.|replicas\/start/.test(
          file,
        ),
      ),
    ).toEqual([]);
    expect(without('mongo', mongodb.files)).toEqual([
      'services/credits/test/ledger-location-redis-mongo.engines.test.ts',
    ]);
    expect(without('test/api/', mongodb.files)).toEqual([]);
    expect(mongodb.untested).toEqual([
      'REDIS_URL is not set: NOT tested: the suites of its engine (*redis*.engines.test.ts).',
      'KAFKA_BROKERS is not set: NOT tested: the suites of its engine (*kafka*.engines.test.ts).',
      'Without all three there is one replica of every service: NOT tested: test/admin/rebuild, test/faults/outages, test/replicas/(read-your-writes|clocks|jobs|keys|rolling-restart|start), test/upgrades/replicas.',
    ]);
    expect(redis.files.filter((file) => file.startsWith('test/'))).toEqual([]);
    expect(redis.files).toContain('services/credits/test/redis-start.engines.test.ts');
    expect(redis.untested).toContain(
      'Redis needs MONGODB_URL, where the rows of its ledger go: NOT tested: the whole system (test/).',
    );
  });
});
