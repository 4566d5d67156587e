import { jest } from '@jest/globals';
import { ServiceError } from 'platform/core/errors.ts';
import { newId } from 'platform/core/ids.ts';
import { makeLog } from 'platform/core/log.ts';
import { serverToken } from 'platform/service/testing.ts';
import { makeHeartbeats } from '../src/executions/heartbeats.ts';
import type { ExecutionRecord } from '../src/executions/store.ts';

describe('heartbeats of a run', () => {
  beforeEach(() => jest.useFakeTimers());
  afterEach(() => jest.useRealTimers());
  const actor = { kind: 'server_token', id: 't', name: 'ci', via: '' };
  const execution = { _id: newId(), organizationId: 'o', requestId: 'r', actor } as ExecutionRecord;
  const call = { principal: serverToken('o'), requestId: 'r' };
  const needsOf = (extendLease: () => Promise<boolean>) => ({
    auth: { findStoppedActors: async () => ({ stopped: [] }) },
    credits: { extend: async () => ({ state: 'OPEN' as const }) },
    executions: { extendLease, toBeCancelled: async () => [] },
    config: { RESERVATION_TTL_MS: 1 },
    log: makeLog('agents', 'silent'),
  });

  it('end it when it belongs to somebody else, and not when the store fails once', async () => {
    const answers: (boolean | 'down')[] = [true, 'down', true, false];
    const isAborted: boolean[] = [];
    const extendLease = async (): Promise<boolean> => {
      const answer = answers.shift()!;
      if (answer === 'down') throw new ServiceError('UNAVAILABLE');
      return answer;
    };
    const { signal, stop } = makeHeartbeats(6_000).start(needsOf(extendLease), execution, () => null, call);
    for (let left = answers.length; left > 0;) {
      await jest.advanceTimersByTimeAsync(250);
      if (answers.length === left) continue;
      left = answers.length;
      isAborted.push(signal.aborted);
    }
    stop();
    expect(isAborted).toEqual([false, false, false, true]);
  });

  it('of one organization are not ended by another one that names the same run', () => {
    const heartbeats = makeHeartbeats(6_000);
    const { signal, stop } = heartbeats.start(
      needsOf(async () => true),
      execution,
      () => null,
      call,
    );
    heartbeats.cancel('other', execution._id);
    expect(signal.aborted).toBe(false);
    heartbeats.cancel('o', execution._id);
    expect(signal.aborted).toBe(true);
    stop();
  });
});
