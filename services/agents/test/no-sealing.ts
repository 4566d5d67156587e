import type { Sealing } from 'platform/core/sealing.ts';

/** For tests in which no secret matters: texts stay as they are. */
export const NO_SEALING: Sealing = {
  seal: (_purpose, secret) => secret,
  open: (_purpose, sealed) => sealed,
  sealsUnder: () => 'none',
  ageOf: () => 'present',
  hasFile: () => true,
  close: () => undefined,
};
