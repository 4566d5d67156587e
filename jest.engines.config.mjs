import { availableParallelism } from 'node:os';
import base from './jest.config.mjs';

/** A suite for one engine has its name in the file name. The whole-system tests use every server whose URL is set. */
const SUITES = { MONGODB_URL: /mongo/, REDIS_URL: /redis/, KAFKA_BROKERS: /kafka/ };
const missing = Object.keys(SUITES).filter((name) => !process.env[name]);
if (missing.length === 3)
  throw new Error(`Set ${Object.keys(SUITES).join(', ')}: npm run engines -- up starts the servers and prints them.`);

// makes the whole-system tests use these servers and, when all three are set, two replicas of every service
process.env.TEST_ENGINES = '1';

/** Tests of the start and of backups on embedded engines, and tests that only look at files or at this command. */
const NO_SERVERS = [
  '/test/start/',
  '/test/deploy/',
  '/test/admin/publish-keys\\.test\\.ts$',
  '/test/upgrades/(one-replica|stored-types)\\.test\\.ts$',
  '/test/backups/(refused|under-load)\\.test\\.ts$',
  '/test/(architecture|ci-run|shard-plan|engines-reachable|access|durability|release)\\.test\\.ts$',
];

/**
 * Of connections, runners, services that are down, metrics, the page, and usage of the command line: the servers behind
 * them make no difference.
 */
const NO_DIFFERENCE = [
  '/test/admin/(command-line|help)\\.test\\.ts$',
  '/test/api/(greedy-readers|tiny-chunks|http-semantics|reference-page-in-chromium)\\.test\\.ts$',
  '/test/faults/degradation\\.test\\.ts$',
  '/test/hostile/runs\\.test\\.ts$',
  '/test/telemetry/(metrics|documents)\\.test\\.ts$',
];

/** Tests that need two replicas of every service, which share all three servers. */
const REPLICA_TESTS = [
  'test/admin/rebuild',
  'test/faults/outages',
  'test/replicas/(read-your-writes|clocks|jobs|keys|rolling-restart|start)',
  'test/upgrades/replicas',
];

/** Tests of agents that use no store, or one on SQLite in any case. */
const OF_ONE_PROCESS = [
  ...['definition-reference', 'query-plans', 'redact', 'reseal', 'reservation', 'retention'],
  ...['run-costs', 'run-crashes', 'run-protocol', 'run-queue', 'turns', 'write-groups'],
];

/** Tests of single services that also run on servers, with two replicas of the service or on the store itself. */
const SERVICE_TESTS = [
  `agents/test/!(${OF_ONE_PROCESS.join('|')})`,
  'memory/test/{tenancy,fences,model,create-memory-object,stored-bytes,type-changes,schema-evolution,relations,relation-audiences}',
  'auth/test/{audit-consumer,token-races,first-signing-key}',
].map((tests) => `<rootDir>/services/${tests}.test.ts`);

const untested = missing.map((name) => ({
  why: `${name} is not set`,
  what: `the suites of its engine (*${SUITES[name].source}*.engines.test.ts)`,
  pattern: `${SUITES[name].source}[^/]*\\.engines\\.test\\.ts$`,
}));
if (missing.length > 0)
  untested.push({
    why: 'Without all three there is one replica of every service',
    what: REPLICA_TESTS.join(', '),
    pattern: `<rootDir>/(${REPLICA_TESTS.join('|')})\\.engines\\.test\\.ts$`,
  });
if (!process.env.MONGODB_URL && process.env.REDIS_URL)
  untested.push({
    why: 'Redis needs MONGODB_URL, where the rows of its ledger go',
    what: 'the whole system (test/)',
    pattern: '<rootDir>/test/',
  });
for (const { why, what } of untested) process.stderr.write(`${why}: NOT tested: ${what}.\n`);

/** `npm run test:engines`: the acceptance suites and the whole-system tests, on the servers whose URLs are set. */
export default {
  ...base,
  testMatch: ['**/*.engines.test.ts', '<rootDir>/test/**/*.test.ts', ...SERVICE_TESTS],
  testPathIgnorePatterns: [
    '/node_modules/',
    ...NO_SERVERS,
    ...NO_DIFFERENCE,
    ...untested.map(({ pattern }) => pattern),
  ],
  testTimeout: 300_000,
  runner: '<rootDir>/jest.engines-runner.mjs',
  // In each lane of the runner. Two replicas of every service and three servers already keep two cores busy.
  maxWorkers: Math.max(1, availableParallelism() - 1),
  // A lane cannot get another process (jest.engines-runner.mjs), so `npm run jest` gives it a larger heap.
  workerIdleMemoryLimit: undefined,
};
