import { newId } from 'platform/core/ids.ts';
import type { RuntimeDefinition } from '../../src/runtimes/rules.ts';
import type { RunRequest } from '../../src/runtimes/runtime.ts';
import { LIMITS } from './runners/pool-fixture.ts';

/** A run of an agent with this member `runtime`, for an organization named "one". */
export const requestFor = (runtime: RuntimeDefinition, args: unknown = {}): RunRequest => ({
  runtime,
  argsText: JSON.stringify(args),
  limits: { ...LIMITS },
  outputSchema: undefined,
  checkOutput: () => Promise.resolve([]),
  ...{ trace: false, tools: undefined },
  organizationId: 'one',
  agent: 'tested',
  agentVersion: 1,
  agentExecutionId: newId(),
  idempotencyKey: newId(),
  signal: new AbortController().signal,
  onStart: () => undefined,
});
