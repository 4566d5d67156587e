import { performance } from 'node:perf_hooks';
import type { Reply } from '../support/request.ts';

/** Multiplies what is drawn and tried; the same again by the seed. */
export const COUNT = Number(process.env['HOSTILE_COUNT'] ?? 1);
export const SEED = Number(process.env['HOSTILE_SEED'] ?? 1);

/** Replies that an attacker may get to legal requests: never one that tells of a fault of the platform. */
const REFUSALS = [400, 401, 402, 403, 404, 405, 408, 409, 411, 412, 413, 415, 422, 429, 431];

interface Tried {
  attack: string;
  requests: number;
  statuses: Record<string, number>;
  neighbours: number;
  worstMs: number;
}

const tried: Tried[] = [];

export interface Attack {
  /** What is printed. */
  name: string;
  /** Sends one request of the attack, the n-th; resolves to the status, or to a word for what happened to it. */
  send: (n: number) => Promise<Reply | number | string>;
  /** Requests at the same time. */
  atOnce: number;
  /** Further outcomes that this attack may have. */
  allowed?: readonly (number | string)[];
  /** Sends a request of the neighbour and checks its reply. */
  neighbour: (n: number) => Promise<void>;
  /** Requests of the neighbour. */
  neighbours?: number;
  /** At least so many requests of the attack are sent. */
  atLeast?: number;
}

/**
 * Keeps up the attack until the neighbour's requests, sent one after the other, are all answered. An attack that
 * starved the neighbour would never end.
 * @returns how often the attack had each outcome
 */
export async function withstand({
  name,
  send,
  atOnce,
  allowed = [],
  neighbour,
  neighbours = 5 * COUNT,
  atLeast = atOnce,
}: Attack): Promise<Readonly<Record<string, number>>> {
  const statuses: Record<string, number> = {};
  const record: Tried = { attack: name, requests: 0, statuses, neighbours: 0, worstMs: 0 };
  tried.push(record);
  let ended = false;
  const attackers = Array.from({ length: atOnce }, async () => {
    while (!ended || record.requests < atLeast) {
      const outcome = await send(record.requests++);
      const status = typeof outcome === 'object' ? outcome.status : outcome;
      statuses[status] = (statuses[status] ?? 0) + 1;
    }
  });
  const neighbourhood = async (): Promise<void> => {
    for (; record.neighbours < neighbours; record.neighbours++) {
      const start = performance.now();
      await neighbour(record.neighbours);
      record.worstMs = Math.max(record.worstMs, performance.now() - start);
    }
  };
  try {
    await neighbourhood();
  } finally {
    ended = true;
    await Promise.all(attackers);
  }
  const expected = [200, 201, ...REFUSALS, ...allowed].map(String);
  expect(Object.keys(statuses).filter((status) => !expected.includes(status))).toEqual([]);
  return statuses;
}

/** Prints what was tried, how often, and the slowest reply that a neighbour got meanwhile. */
export function printTried(): void {
  const lines = tried.map(
    ({ attack, requests, statuses, neighbours, worstMs }) =>
      `${attack}: ${requests} requests (${Object.entries(statuses)
        .map(([status, count]) => `${count} × ${status}`)
        .join(', ')}); ${neighbours} of a neighbour, the slowest in ${Math.round(worstMs)} ms`,
  );
  process.stdout.write(`${lines.join('\n')}\n`);
}
