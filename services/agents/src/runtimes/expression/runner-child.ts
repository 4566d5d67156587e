import { Worker } from 'node:worker_threads';
import type { ExpressionLimits, ExpressionResult } from './evaluator.ts';
import { keepRealms, prepareRealms } from './realm.ts';

/** A message from the pool to a runner. */
export interface Assignment {
  id: number;
  organizationId: string;
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

let running: number;
const realmOf = keepRealms(prepareRealms((steps) => send({ kind: 'steps', id: running, steps })));

new Worker(new URL('./watch-parent.ts', import.meta.url), { workerData: process.argv[2] }).unref();
process.on('disconnect', () => process.exit());
process.on('message', ({ id, organizationId, source, argsText, limits }: Assignment) => {
  running = id;
  send({ kind: 'started', id });
  send({ kind: 'finished', id, result: realmOf(organizationId).evaluate(source, argsText, limits) });
});
