import base from './jest.config.mjs';

/** Suites of one engine are in files named after it; the whole system runs on whatever is named. */
const SUITES = { MONGODB_URL: /mongo/, REDIS_URL: /redis/, KAFKA_BROKERS: /kafka/ };
const missing = Object.keys(SUITES).filter((name) => !process.env[name]);
if (missing.length === 3)
  throw new Error(`Set ${Object.keys(SUITES).join(', ')}: npm run engines -- up starts the servers and prints them.`);

// the whole-system tests take these servers, and two replicas of every service
process.env.TEST_ENGINES = '1';

/** The start of the embedded product, and what looks at files or at this command alone. */
const NO_SERVERS = ['/test/start/', '/test/(architecture|shard-plan|engines-reachable)\\.test\\.ts$'];

/** They hold two replicas of every service against each other, and those share all three servers. */
const OF_REPLICAS = [
  'test/admin/rebuild',
  'test/faults/outages',
  'test/replicas/(read-your-writes|clocks|jobs|keys|start)',
];

/** Matrices and property tests of the services, with two replicas of the service or on the store itself. */
const OF_SERVICES = [
  'agents/test/!(run-queue)',
  'memory/test/{tenancy,fences,create-memory-object}',
  'auth/test/{audit-consumer,token-races}',
].map((tests) => `<rootDir>/services/${tests}.test.ts`);

const untested = missing.map((name) => ({
  why: `${name} is not set`,
  what: `the suites of its engine (*${SUITES[name].source}*.engines.test.ts)`,
  pattern: `${SUITES[name].source}[^/]*\\.engines\\.test\\.ts$`,
}));
if (missing.length > 0)
  untested.push({
    why: 'Without all three there is one replica of every service',
    what: OF_REPLICAS.join(', '),
    pattern: `<rootDir>/(${OF_REPLICAS.join('|')})\\.engines\\.test\\.ts$`,
  });
if (!process.env.MONGODB_URL && process.env.REDIS_URL)
  untested.push({
    why: 'Redis needs MONGODB_URL, where the rows of its ledger go',
    what: 'the whole system (test/)',
    pattern: '<rootDir>/test/',
  });
for (const { why, what } of untested) process.stderr.write(`${why}: NOT tested: ${what}.\n`);

/** npm run test:engines: the acceptance suites and the whole-system tests, on the servers that the URLs name. */
export default {
  ...base,
  testMatch: ['**/*.engines.test.ts', '<rootDir>/test/**/*.test.ts', ...OF_SERVICES],
  testPathIgnorePatterns: ['/node_modules/', ...NO_SERVERS, ...untested.map(({ pattern }) => pattern)],
  globalSetup: '<rootDir>/test/support/require-reachable-engines.ts',
  testTimeout: 300_000,
};
