import { ServiceError } from '../core/errors.ts';
import { inScopeOfOne, inSpan, traceScope } from '../telemetry/traces.ts';
import type { TraceScope } from '../telemetry/traceparent.ts';
import { DuplicateKeyError, ExpectationFailedError } from './store.ts';

/** A write that can share a batch with others. */
export interface GroupedWrite {
  /** About how many bytes it writes; negative for as many bytes less. It decides only when a group is full. */
  bytes: number;
}

/** A group with more bytes is closed, because a batch holds up all others of its store. */
const GROUP_BYTES = 262_144;

const NO_ATTRIBUTES = () => ({});

interface Waiting<W> {
  write: W;
  scope: TraceScope | undefined;
  resolve(): void;
  reject(error: unknown): void;
}

/**
 * Puts the writes of one organization in one event-loop turn that have the same `key` into one group, so that they are
 * one batch and the counter is written once for all of them. Those of later turns join them for `waitMs()`, asked when
 * a group begins. If the batch of a group conflicts, each of its writes is applied alone: so the failure of one
 * concerns only that one.
 * @param apply applies one batch for the whole group, or rejects and has applied nothing
 * @returns adds a write; resolves when it is durable
 */
export function writeGroups<W extends GroupedWrite>(
  apply: (group: readonly W[]) => Promise<void>,
  waitMs: () => number = () => 0,
): (organizationId: string, key: string, write: W) => Promise<void> {
  let waiting = new Map<string, Waiting<W>[]>();

  function applyAll(): void {
    const all = waiting;
    waiting = new Map();
    for (const writes of all.values()) for (const group of inGroups(writes)) void applyGroup(group);
  }

  async function applyGroup(group: readonly Waiting<W>[]): Promise<void> {
    try {
      await inScopeOfOne(
        group.map(({ scope }) => scope),
        () => apply(group.map(({ write }) => write)),
      );
      for (const { resolve } of group) resolve();
    } catch (error) {
      if (group.length > 1 && isConflict(error)) for (const one of group) void applyGroup([one]);
      else for (const { reject } of group) reject(error);
    }
  }

  function applyLater(): void {
    const ms = waitMs();
    if (ms < 1) setImmediate(applyAll);
    else setTimeout(applyAll, ms);
  }

  const add = (key: string, write: W): Promise<void> =>
    new Promise((resolve, reject) => {
      if (waiting.size === 0) applyLater();
      const one = { write, scope: traceScope(), resolve, reject };
      const others = waiting.get(key);
      if (others) others.push(one);
      else waiting.set(key, [one]);
    });
  return (organizationId, key, write) =>
    inSpan('internal', 'write in a group', NO_ATTRIBUTES, () => add(`${organizationId} ${key}`, write));
}

function inGroups<W extends GroupedWrite>(writes: readonly Waiting<W>[]): Waiting<W>[][] {
  const groups: Waiting<W>[][] = [];
  let room = 0;
  for (const one of writes) {
    if (room <= 0) {
      groups.push([]);
      room = GROUP_BYTES;
    }
    groups.at(-1)!.push(one);
    room -= Math.abs(one.write.bytes);
  }
  return groups;
}

/** Nothing was written, and one write of the group is the cause; any other error concerns the whole group. */
const isConflict = (error: unknown): boolean =>
  error instanceof ExpectationFailedError ||
  error instanceof DuplicateKeyError ||
  (error instanceof ServiceError && (error.reason === 'TIER_LIMIT' || error.reason === 'CLIENT_GONE'));
