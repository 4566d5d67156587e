import { AgentFault, performOnNetwork, type Performed } from '../../../src/runtimes/network/network-run.ts';
import { makeTurns } from '../../../src/runtimes/network/turns.ts';
import type { RunRequest } from '../../../src/runtimes/runtime.ts';
import { requestFor } from '../request-for.ts';
import { LIMITS } from '../runners/pool-fixture.ts';

const never = (): Promise<Performed> => new Promise(() => undefined);

describe('a run on the network that never comes to an end', () => {
  const turns = makeTurns({ size: 1, limit: 10 });
  let stopping: AbortController;
  let caller: AbortController;
  let usage: { calls: number };
  beforeEach(() => {
    [stopping, caller, usage] = [new AbortController(), new AbortController(), { calls: 0 }];
  });
  const perform = (performing: (signal: AbortSignal) => Promise<Performed>, given: Partial<RunRequest> = {}) =>
    performOnNetwork(
      { ...requestFor({ type: 'http' }), signal: caller.signal, ...given },
      { turns, stopping: stopping.signal, usage },
      performing,
    );

  it.each(['timed_out', 'cancelled', 'interrupted'] as const)('is %s, and gives back its turn', async (outcome) => {
    const limits = { ...LIMITS, wallMs: outcome === 'timed_out' ? 50 : 60_000 };
    const running = perform(
      () => {
        usage.calls = 3;
        if (outcome === 'cancelled') queueMicrotask(() => caller.abort());
        if (outcome === 'interrupted') queueMicrotask(() => stopping.abort());
        return never();
      },
      { limits },
    );
    const next = turns.take('one', new AbortController().signal);
    const result = await running;
    expect(result).toEqual(outcome === 'interrupted' ? { outcome } : { outcome, usage: { calls: 3 } });
    // What goes on late counts no more.
    usage.calls = 4;
    expect(result).not.toMatchObject({ usage: { calls: 4 } });
    (await next)!();
  });

  it('fails by nothing that comes after its end', async () => {
    const late = Promise.withResolvers<Performed>();
    const running = perform(() => {
      queueMicrotask(() => caller.abort());
      return late.promise;
    });
    expect(await running).toEqual({ outcome: 'cancelled', usage: { calls: 0 } });
    late.reject(new AgentFault('too late'));
    await expect(late.promise).rejects.toThrow('too late');
  });
});
