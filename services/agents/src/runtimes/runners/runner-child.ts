import { Worker } from 'node:worker_threads';
import { keepRealms, prepareRealms } from '../expression/realm.ts';
import type { EvaluateScript } from '../script/sandbox.ts';
import type { RunLimits } from '../rules.ts';
import type { EvaluationResult, SourceDefinition } from './evaluation.ts';

/** A message from the pool to a runner. */
export interface Assignment {
  id: number;
  organizationId: string;
  runtime: SourceDefinition;
  /** JSON text; absent to check the source only, where the runtime does that in a runner. */
  argsText?: string;
  limits: RunLimits;
  trace: boolean;
}

/** A message from a runner to the pool. */
export type Report =
  | { kind: 'started'; id: number }
  | { kind: 'steps'; id: number; steps: number }
  | { kind: 'finished'; id: number; result: EvaluationResult };

const send = (report: Report): void => void process.send!(report);

let running: number;
const onSteps = (steps: number): void => send({ kind: 'steps', id: running, steps });
const realmOf = keepRealms(prepareRealms(onSteps));
let evaluateScript: EvaluateScript | undefined;

async function evaluate({ organizationId, runtime, argsText, limits, trace }: Assignment): Promise<EvaluationResult> {
  const { type, source } = runtime;
  if (type === 'expression') return realmOf(organizationId).evaluate(source, argsText ?? 'null', limits);
  evaluateScript ??= (await import('../script/sandbox.ts')).openSandbox(onSteps);
  return evaluateScript(organizationId, { source, argsText, trace }, limits);
}

new Worker(new URL('./watch-parent.ts', import.meta.url), { workerData: process.argv[2] }).unref();
process.on('disconnect', () => process.exit());
process.on('message', async (assignment: Assignment) => {
  const { id } = assignment;
  running = id;
  send({ kind: 'started', id });
  send({ kind: 'finished', id, result: await evaluate(assignment) });
});
