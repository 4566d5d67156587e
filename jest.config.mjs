import { availableParallelism } from 'node:os';

/** `npm test`. Types are checked by `tsc` (npm run check); swc only strips them. */
export default {
  testEnvironment: 'node',
  extensionsToTreatAsEsm: ['.ts'],
  transform: {
    '^.+\\.ts$': [
      '@swc/jest',
      { jsc: { target: 'es2024', parser: { syntax: 'typescript' } }, module: { type: 'es6' } },
    ],
  },
  testMatch: ['**/*.test.ts'],
  // the previous release, laid out by test/upgrades, has packages of the same names
  modulePathIgnorePatterns: ['<rootDir>/\\.releases/'],
  testPathIgnorePatterns: ['/node_modules/', '\\.engines\\.test\\.ts$'],
  testSequencer: '<rootDir>/jest.sequencer.mjs',
  globalSetup: '<rootDir>/test/support/set-up.ts',
  globalTeardown: '<rootDir>/test/support/tear-down.ts',
  testTimeout: 180_000,
  // Tests wait for processes and disks: with one worker for each core, a quarter of the processor time was idle.
  maxWorkers: availableParallelism() + 1,
  // Jest keeps some 20 MB of each file; a worker near its heap limit of 4 GB is so slow that tests time out.
  workerIdleMemoryLimit: '1.5GB',
};
