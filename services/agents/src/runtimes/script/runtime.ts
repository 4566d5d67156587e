import { ServiceError } from 'platform/core/errors.ts';
import type { RunnerPool } from '../runners/runner-pool.ts';
import { sourceRuntime } from '../runners/source-runtime.ts';
import type { Runtime } from '../runtime.ts';

const LIMITS_OF_CHECK = { wallMs: 5_000, maxSteps: 10_000, memoryMb: 64, outputBytes: 100 };

/** JavaScript that defines `run(args)`. It is compiled by a runner, also when it is checked. */
export const scriptRuntime = (runners: RunnerPool): Runtime =>
  sourceRuntime(
    {
      type: 'script',
      takesTools: true,
      language: 'javascript',
      description:
        'JavaScript that defines `run(args)`, which may be async; what it returns is the output, as JSON.stringify writes it. With `tools`, `memory` has the operations.',
      example:
        'function run({ items }) { return { total: items.reduce((sum, { price, qty }) => sum + price * qty, 0) }; }',
      async check(organizationId, source) {
        const result = await runners.evaluate({
          runtime: { type: 'script', source },
          limits: LIMITS_OF_CHECK,
          ...{ trace: false, tools: undefined },
          organizationId,
          signal: new AbortController().signal,
          onStart: () => undefined,
        });
        if (result.outcome === 'succeeded') return undefined;
        if (result.outcome === 'failed') return result.message;
        if (result.outcome === 'timed_out') return 'The script cannot be compiled within five seconds';
        // The service stops, or the runner died; its death is in the log.
        throw new ServiceError('UNAVAILABLE', 'The script could not be checked', { headers: { 'Retry-After': '1' } });
      },
    },
    runners,
  );
