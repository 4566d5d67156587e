import type { Violation } from 'platform/core/errors.ts';
import { prepareRealms, type Realm } from './realm.ts';

let openRealm: (() => Realm) | undefined;

/** Checks the source of an expression before it is stored. Paths of violations are empty, as the source is one text. */
export function checkExpression(source: string): Violation[] {
  openRealm ??= prepareRealms(() => undefined);
  const message = openRealm().check(source);
  return message === undefined ? [] : [{ path: '', message }];
}
