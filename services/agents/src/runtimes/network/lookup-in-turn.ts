import { lookup, type LookupAddress, type LookupAllOptions } from 'node:dns';
import { makeTurns, type Turns } from './turns.ts';

/** `lookup` of node:dns, asked for all addresses. */
export type LookupAll = (
  hostname: string,
  options: LookupAllOptions,
  callback: (error: NodeJS.ErrnoException | null, found: LookupAddress[]) => void,
) => void;

/** libuv has two threads for look-ups: one organization gets one of them, and another organization the other. */
const AT_ONCE = 1;
/** More than there are runs on the network. */
const WAITING = 10_000;

export const makeLookupTurns = (): Turns => makeTurns({ size: AT_ONCE, limit: WAITING });

/**
 * Looks names up in the turn of an organization. A look-up holds a thread until the name servers of the name have
 * answered, which may be long after its run has ended: those of one organization must not hold all threads.
 * @param signal aborts while it waits for its turn
 */
export const lookupInTurn =
  (turns: Turns, organizationId: string, signal: AbortSignal, resolve: LookupAll = lookup): LookupAll =>
  (hostname, options, callback) => {
    turns.take(organizationId, signal).then(
      (endTurn) => {
        if (!endTurn) return callback(new Error('the run has ended'), []);
        resolve(hostname, options, (error, found) => {
          endTurn();
          callback(error, found);
        });
      },
      (error: Error) => callback(error, []),
    );
  };
