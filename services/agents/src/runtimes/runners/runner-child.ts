import { Worker } from 'node:worker_threads';
import { keepRealms, prepareRealms } from '../expression/realm.ts';
import type { EvaluateScript } from '../script/sandbox.ts';
import type { RunLimits } from '../rules.ts';
import type { EvaluationResult, SourceDefinition } from './evaluation.ts';
import { openToolCalls, type ToolAnswer, type ToolCall } from './tool-calls.ts';

/** A message from the pool to a runner. */
export interface Assignment {
  id: number;
  organizationId: string;
  runtime: SourceDefinition;
  /** JSON text; absent to check the source only, where the runtime does that in a runner. */
  argsText?: string;
  limits: RunLimits;
  trace: boolean;
  /** Names of the operations that its tools have. */
  operations: readonly string[];
  /** Further calls of them are refused. */
  maxToolCalls: number;
}

/** A message from a runner to the pool. */
export type Report =
  | { kind: 'steps'; id: number; steps: number }
  | ({ kind: 'tool'; id: number } & ToolCall)
  | { kind: 'finished'; id: number; result: EvaluationResult };

const send = (report: Report): void => void process.send!(report);

let running: number | undefined;
const onSteps = (steps: number): void => send({ kind: 'steps', id: running!, steps });
const realmOf = keepRealms(prepareRealms(onSteps));
let toolCalls: ReturnType<typeof openToolCalls>;
let evaluateScript: EvaluateScript | undefined;

async function evaluate(assignment: Assignment): Promise<EvaluationResult> {
  const { organizationId, runtime, argsText, limits, ...given } = assignment;
  const { type, source } = runtime;
  if (type === 'expression') return realmOf(organizationId).evaluate(source, argsText ?? 'null', limits);
  evaluateScript ??= (await import('../script/sandbox.ts')).openSandbox(onSteps, (operation, input) =>
    toolCalls.call(operation, input),
  );
  return evaluateScript(organizationId, { source, argsText, ...given }, limits);
}

// Whoever stops the service may signal all its processes: it lets the run end, and then ends this one.
for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => undefined);
const watched = process.argv[2];
if (watched !== undefined)
  new Worker(new URL('./watch-parent.js', import.meta.url), { workerData: watched, execArgv: [] }).unref();
process.on('disconnect', () => process.exit());
process.on('message', async (message: Assignment | ToolAnswer) => {
  const { id } = message;
  if ('answer' in message) return id === running ? toolCalls.answer(message) : undefined;
  running = id;
  toolCalls = openToolCalls((call) => send({ kind: 'tool', id, ...call }));
  const result = await evaluate(message);
  // An answer that comes now would let a waiting call begin, which the pool would take for one of the next evaluation.
  running = undefined;
  send({ kind: 'finished', id, result });
});
