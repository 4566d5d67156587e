import { fairScheduler } from 'platform/core/fair-scheduler.ts';
import { newId } from 'platform/core/ids.ts';
import { Principal } from 'platform/core/principal.ts';
import type { LoadedVersion } from '../../src/definitions/version-loader.ts';
import type { ExecutionRecord } from '../../src/executions/store.ts';
import { runTools, type RunTools } from '../../src/tools/run-tools.ts';
import type { Tools } from '../../src/tools/rules.ts';
import { memoryDouble } from '../memory-double.ts';

/** The tools of a run of an organization named "one", and the memory that they touch. */
export function toolsFor({
  tools = { memory: { types: ['Note'], access: 'write' } },
  maxToolCalls = 100,
  memory = memoryDouble(),
}: { tools?: Tools; maxToolCalls?: number; memory?: ReturnType<typeof memoryDouble> } = {}) {
  const issued = { token: 'akc_of_this_test', expiresAt: '2030-01-01T00:01:00.000Z' };
  const made = runTools(
    {
      memory: memory.client,
      callbackTokens: { issue: () => Promise.resolve(issued) } as never,
      schedule: fairScheduler(),
    },
    {
      execution: { _id: newId(), organizationId: 'one', agent: 'keeper', requestId: 'r-1' } as ExecutionRecord,
      version: { tools, limits: { maxToolCalls } } as LoadedVersion,
      asked: Principal.fromPartial({ tier: 'professional', limits: { memory_objects: 7 } }),
    },
  );
  const run = made as RunTools;
  return {
    tools: run,
    memory,
    /** The result of an operation, or its error. */
    async call(operation: string, input: unknown, signal = new AbortController().signal): Promise<unknown> {
      const text = typeof input === 'string' ? input : JSON.stringify(input);
      const answer = JSON.parse(await run.call(operation, text, signal)) as { result?: unknown; error?: unknown };
      return 'error' in answer ? { error: answer.error } : answer.result;
    },
  };
}
