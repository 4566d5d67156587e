import { systemClock } from 'platform/core/clock.ts';
import { ServiceError } from 'platform/core/errors.ts';
import { closedInTheEnd } from 'platform/service/test-end.ts';
import { aloneStore } from '../../src/limits/rate-stores.ts';
import { makeRateCounters } from '../../src/limits/rate-counters.ts';
import { makeStrangers } from '../../src/limits/strangers.ts';
import { log } from '../fixture.ts';

it('remembers the 10,000 tokens that were valid last', () => {
  const counters = makeRateCounters(aloneStore(systemClock), systemClock, log);
  closedInTheEnd(() => counters.close());
  const strangers = makeStrangers(counters, counters, 1);
  for (const n of [
    0,
    1,
    0,
    ...Array(9_999)
      .keys()
      .map((more) => more + 2),
  ])
    strangers.wasValid(`token-${n}`);
  strangers.wasDenied('192.0.2.1', undefined, 'List', new ServiceError('UNAUTHENTICATED'));
  const ask = (n: number) => () => strangers.requireRoom('192.0.2.1', `token-${n}`, 'List');
  expect(ask(0)).not.toThrow();
  expect(ask(1)).toThrow('from this address');
});
