/** Limits that tests of other things do not reach. */
export const HIGH_RATES = {
  REQUESTS_PER_MINUTE: '10000000',
  RUNS_PER_MINUTE: '10000000',
  STRANGER_REQUESTS_PER_MINUTE: '10000000',
  REQUESTS_AT_ONCE: '100000',
};
