import { Worker } from 'node:worker_threads';
import { evaluateExpression, type ExpressionLimits, type ExpressionResult } from './expression.ts';

/** A message from the pool to a runner. */
export interface Assignment {
  id: number;
  source: string;
  argsText: string;
  limits: ExpressionLimits;
}

/** A message from a runner to the pool. */
export type Report =
  | { kind: 'started'; id: number }
  | { kind: 'steps'; id: number; steps: number }
  | { kind: 'finished'; id: number; result: ExpressionResult };

const send = (report: Report): void => void process.send!(report);

new Worker(new URL('./watch-parent.ts', import.meta.url), { workerData: process.argv[2] }).unref();
process.on('disconnect', () => process.exit());
process.on('message', async ({ id, source, argsText, limits }: Assignment) => {
  send({ kind: 'started', id });
  const result = await evaluateExpression(source, argsText, limits, (steps) => send({ kind: 'steps', id, steps }));
  send({ kind: 'finished', id, result });
});
