import base from './jest.config.mjs';

/** Suites of one engine are in files named after it; the whole system runs on whatever is named. */
const SUITES = { MONGODB_URL: /mongo/, REDIS_URL: /redis/, KAFKA_BROKERS: /kafka/ };
const missing = Object.keys(SUITES).filter((name) => !process.env[name]);
if (missing.length === 3) throw new Error(`Set ${Object.keys(SUITES).join(', ')}: npm run engines -- up starts the servers and prints them.`);
for (const name of missing) process.stderr.write(`${name} is not set: what needs that server is NOT tested.\n`);

// the whole-system tests take these servers, and two replicas of every service
process.env.TEST_ENGINES = '1';

/** The start of the embedded product, and what looks at files alone. */
const NO_SERVERS = ['/test/start/', '/test/tidy\\.test\\.ts$', '/test/shard-plan\\.test\\.ts$'];

/** Matrices and property tests of the services, with two replicas of the service or on the store itself. */
const OF_SERVICES = ['memory/test/{tenancy,fence,create-memory-object}', 'auth/test/{audit-consumer,token-races}'].map((tests) => `<rootDir>/services/${tests}.test.ts`);

/** npm run test:engines: the acceptance suites and the whole-system tests, on the servers that the URLs name. */
export default {
  ...base,
  testMatch: ['**/*.engines.test.ts', '<rootDir>/test/**/*.test.ts', ...OF_SERVICES],
  testPathIgnorePatterns: ['/node_modules/', ...NO_SERVERS, ...missing.map((name) => `${SUITES[name].source}[^/]*\\.engines\\.test\\.ts$`)],
  globalSetup: '<rootDir>/test/engines-reachable.ts',
  testTimeout: 300_000,
};
