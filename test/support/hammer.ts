import { Agent, request } from 'node:http';

/** "ok", or the code of the error. */
export type Outcome = 'ok' | 'unauthenticated' | 'tier_required' | 'admin_required';

/** Somebody whose requests must have an outcome that tests change; undefined while a change is under way. */
export interface Caller {
  name: string;
  bearer: string;
  expected: Outcome | undefined;
  /** Rises with every change. */
  changes: number;
}

export interface Hammer {
  counts: { certain: number; unavailable: number; wrong: string[] };
  /** Resolves when so many requests that started after this call, and that no change overlapped, were answered. */
  answered(requests: number): Promise<void>;
  stop(): Promise<void>;
}

/**
 * Requests the path in turn as each caller, in loops over as many keep-alive connections. An answer is wrong if it is
 * not the outcome that was expected when its request started, and no change of its caller overlapped it.
 */
export function startHammer(
  baseUrls: readonly string[],
  path: string,
  callers: readonly Caller[],
  loops: number,
): Hammer {
  const agent = new Agent({ keepAlive: true, maxSockets: loops });
  const counts: Hammer['counts'] = { certain: 0, unavailable: 0, wrong: [] };
  let round = { left: 0, done: () => undefined as void };
  let stopped = false;

  async function ask(caller: Caller, baseUrl: string): Promise<void> {
    const { expected, changes, name } = caller;
    const ofRound = round;
    const outcome = await outcomeOf(agent, `${baseUrl}${path}`, caller.bearer);
    if (outcome === 'unavailable') return void counts.unavailable++;
    if (expected === undefined || changes !== caller.changes) return;
    counts.certain++;
    if (outcome !== expected) counts.wrong.push(`${name}: ${outcome} in place of ${expected}`);
    if (--ofRound.left === 0) ofRound.done();
  }
  async function loop(index: number): Promise<void> {
    for (let turn = index; !stopped; turn++)
      await ask(callers[turn % callers.length]!, baseUrls[turn % baseUrls.length]!);
  }
  const running = Promise.all(Array.from({ length: loops }, (_, index) => loop(index)));
  return {
    counts,
    answered: async (requests) => {
      const enough = new Promise<void>((done) => (round = { left: requests, done }));
      await Promise.race([enough, running]);
    },
    async stop() {
      stopped = true;
      await running;
      agent.destroy();
    },
  };
}

const outcomeOf = (agent: Agent, url: string, bearer: string): Promise<string> =>
  new Promise((resolve, reject) => {
    const sent = request(url, { agent, headers: { Authorization: `Bearer ${bearer}` } }, (response) => {
      let text = '';
      response
        .setEncoding('utf8')
        .on('data', (part: string) => (text += part))
        .on('end', () => resolve(response.statusCode === 200 ? 'ok' : (JSON.parse(text) as { code: string }).code))
        .on('error', reject);
    });
    sent.on('error', reject).end();
  });
