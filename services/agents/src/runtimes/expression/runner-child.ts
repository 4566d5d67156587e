import { Worker } from 'node:worker_threads';
import type { ExpressionLimits, ExpressionResult } from './evaluator.ts';
import { prepareRealms, type Realm } from './realm.ts';

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

/** Organizations whose realm is kept: opening one takes about 5 ms of CPU time, keeping it 0.4 MB. */
const REALMS = 4;

const send = (report: Report): void => void process.send!(report);

let running: number;
const openRealm = prepareRealms((steps) => send({ kind: 'steps', id: running, steps }));
const realms = new Map<string, Realm>();

/** The realm of one organization, in which no other organization's expression is ever evaluated. */
function realmOf(organizationId: string): Realm {
  const realm = realms.get(organizationId) ?? openRealm();
  realms.delete(organizationId);
  realms.set(organizationId, realm);
  if (realms.size > REALMS) realms.delete(realms.keys().next().value!);
  return realm;
}

new Worker(new URL('./watch-parent.ts', import.meta.url), { workerData: process.argv[2] }).unref();
process.on('disconnect', () => process.exit());
process.on('message', ({ id, organizationId, source, argsText, limits }: Assignment) => {
  running = id;
  send({ kind: 'started', id });
  send({ kind: 'finished', id, result: realmOf(organizationId).evaluate(source, argsText, limits) });
});
