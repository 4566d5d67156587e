import { integer, type ConfigOf } from 'platform/config.ts';

export const config = {
  RETENTION_DAYS: integer({ description: 'How long the id of a grant or reservation is remembered; ids that are older are refused.', default: 30, min: 1, max: 3_650 }),
  SWEEP_INTERVAL_MS: integer({ description: 'Pause between two rounds of the sweeper that expires reservations.', default: 5_000, min: 50, max: 3_600_000 }),
  RELAY_INTERVAL_MS: integer({ description: 'Pause between two rounds of the relay from the ledger to the event bus.', default: 1_000, min: 10, max: 3_600_000 }),
  LEDGER_PAGE_SIZE: integer({ description: 'Rows on a page of the ledger when the request names no size.', default: 20, min: 1, max: 1_000 }),
};
export type Config = ConfigOf<typeof config>;
