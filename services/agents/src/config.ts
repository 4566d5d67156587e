import { DAY_MS } from 'platform/core/clock.ts';
import { integer, networks, type ConfigOf } from 'platform/core/config.ts';
import { masterKeyFile } from 'platform/core/master-key.ts';

export const config = {
  MASTER_KEY_FILE: masterKeyFile,
  RUNNERS: integer({
    default: 2,
    min: 1,
    max: 64,
    description: 'Child processes that evaluate agents; each is started when first needed.',
  }),
  RUNNERS_MAX: integer({
    default: 16,
    min: 1,
    max: 256,
    description:
      'The same with those started for organizations that have nothing running while all RUNNERS are in use; at least RUNNERS.',
  }),
  RUNNER_IDLE_MS: integer({
    default: 30_000,
    min: 0,
    max: 3_600_000,
    description:
      'Time after which a runner beyond RUNNERS ends that no run has used; one stays while all RUNNERS are in use.',
  }),
  RUNNER_RECYCLE_AFTER: integer({
    default: 20_000,
    min: 1,
    max: 1_000_000,
    description: 'Runs after which a runner process is replaced, as soon as another one stands ready.',
  }),
  RUN_QUEUE_LIMIT: integer({
    default: 256,
    min: 0,
    max: 100_000,
    description:
      'Runs that may wait for a runner; beyond, runs of the organization with the most of them are rejected with 503.',
  }),
  RUNS_AT_ONCE: integer({
    default: 20,
    min: 1,
    max: 100_000,
    description: 'Runs that one organization may have at once; further ones are rejected with 429.',
  }),
  HTTP_RUNS_AT_ONCE: integer({
    default: 100,
    min: 1,
    max: 10_000,
    description:
      'Runs of http agents that may call their endpoints at once; twice as many, if each further one is the only run of ' +
      'its organization.',
  }),
  LLM_RUNS_AT_ONCE: integer({
    default: 100,
    min: 1,
    max: 10_000,
    description:
      'Runs of llm agents that may ask their models at once; twice as many, if each further one is the only run of its ' +
      'organization.',
  }),
  AGENT_NETWORKS: networks({
    default: '',
    description:
      'Networks that http and llm agents may call beside the public internet, also without TLS: 127.0.0.0/8,10.1.0.0/16, ' +
      'say. ' +
      'Empty: none, so that no agent reaches a private or link-local address.',
  }),
  VERSION_CACHE_BYTES: integer({
    default: 67_108_864,
    min: 1_048_576,
    max: 4_294_967_296,
    description:
      'Memory for agents with their compiled schemas, in bytes; the organizations that use it share it equally.',
  }),
  RUN_LEASE_MS: integer({
    default: 15_000,
    min: 100,
    max: 600_000,
    description: "How long a run's lease lasts without a heartbeat; then the reaper interrupts the run.",
  }),
  RESERVATION_TTL_MS: integer({
    default: 120_000,
    min: 1_000,
    max: 3_600_000,
    description: 'How long a reservation of credits lasts without a heartbeat; must be longer than RUN_LEASE_MS.',
  }),
  REAPER_INTERVAL_MS: integer({
    default: 5_000,
    min: 50,
    max: 3_600_000,
    description: 'Pause between two rounds of the reaper.',
  }),
  SETTLED_INTERVAL_MS: integer({
    default: 1_000,
    min: 10,
    max: 60_000,
    description: 'Pause between two batches that mark runs as settled; best well below RUN_LEASE_MS.',
  }),
  RETENTION_INTERVAL_MS: integer({
    default: 600_000,
    min: 50,
    max: DAY_MS,
    description: 'Pause between two rounds of the job that removes data past its retention.',
  }),
  IDEMPOTENCY_KEY_TTL_MS: integer({
    default: DAY_MS,
    min: 600_000,
    max: 7 * DAY_MS,
    description: 'How long the idempotency key of a run is kept.',
  }),
  PAYLOAD_RETENTION_DAYS: integer({
    default: 30,
    min: 8,
    max: 3_650,
    description: 'Days that the args, output and messages of an execution are kept.',
  }),
  EXECUTION_RETENTION_DAYS: integer({
    default: 90,
    min: 8,
    max: 3_650,
    description: 'Days that an execution is kept.',
  }),
};
export type Config = ConfigOf<typeof config>;
