import type { FairScheduler } from 'platform/core/fair-scheduler.ts';
import type { RunnerPool } from '../runners/runner-pool.ts';
import { sourceRuntime } from '../runners/source-runtime.ts';
import type { Runtime } from '../runtime.ts';
import { prepareRealms, type Realm } from './realm.ts';

/** JSONata expressions. They are checked in the process of the service, which evaluates nothing of them. */
export const expressionRuntime = (runners: RunnerPool, schedule: FairScheduler): Runtime =>
  sourceRuntime(
    {
      type: 'expression',
      takesTools: false,
      language: 'jsonata',
      description: 'A JSONata expression over the args; its value is the output.',
      example: '{ "total": $sum(items.(price * qty)) }',
      check: (organizationId, source) => schedule(organizationId, () => checkExpression(source)),
    },
    runners,
  );

let openRealm: (() => Realm) | undefined;

/** @returns why the source cannot be evaluated */
export function checkExpression(source: string): string | undefined {
  openRealm ??= prepareRealms(() => undefined);
  return openRealm().check(source);
}
