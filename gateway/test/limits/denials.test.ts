import { jest } from '@jest/globals';
import { ServiceError } from 'platform/core/errors.ts';
import { serverToken } from 'platform/service/testing.ts';
import type { RecordDenialsRequest } from 'proto/auth/v1/auth.ts';
import { openDenials } from '../../src/limits/denials.ts';
import { log } from '../fixture.ts';

const LIST = '/memory.v1.MemoryService/ListMemoryTypes';

describe('requests that the gateway itself denies', () => {
  beforeEach(() => jest.useFakeTimers());
  afterEach(() => jest.useRealTimers());

  it('are told again when auth did not take them, with those that were denied since', async () => {
    const calls: [code: string, count: number][][] = [];
    let isDown = true;
    const recordDenials = async ({ denials }: RecordDenialsRequest) => {
      calls.push(denials.map(({ code, count }) => [code, count]));
      if (isDown) throw new ServiceError('UNAVAILABLE');
      return {};
    };
    const denials = openDenials({ recordDenials }, { now: () => 29_000_000 * 60_000 }, log);
    const principal = serverToken('o');
    for (let n = 0; n < 3; n++) denials.note(principal, 'RATE_LIMITED', LIST, `request-${n}`);
    await jest.advanceTimersByTimeAsync(5_000);
    denials.note(principal, 'RATE_LIMITED', LIST, 'request-3');
    denials.note(principal, 'TOO_MANY_REQUESTS', LIST, 'request-4');
    isDown = false;
    await jest.advanceTimersByTimeAsync(5_000);
    await denials.close();
    expect(calls).toEqual([
      [['rate_limited', 3]],
      [
        ['rate_limited', 4],
        ['too_many_requests', 1],
      ],
    ]);
  });
});
