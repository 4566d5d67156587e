import { Agent, request } from 'node:http';

/** What must be answered to a request that starts now; undefined while it changes. */
type Expected = 200 | 401 | undefined;

/** Requests per change: that many of the changed tokens, and as many of the others, before the next one. */
const PROBES = 192;

export interface Hammer {
  /** Answers by what was asked for; `unavailable` ones are no answer to whether the token is good; `wrong` tells of those that had to be another. */
  counts: { accepted: number; refused: number; unavailable: number; wrong: string[] };
  /** Makes a change under fire; resolves when enough requests that started after it have been answered. */
  change(tokens: readonly string[], to: 200 | 401, make: () => Promise<unknown>): Promise<void>;
  stop(): Promise<void>;
}

/**
 * Loops of requests over as many kept-alive connections, each turn with the tokens of the last change and with others. An answer
 * is wrong when its request began and ended outside of every change of its token, and the status is not that token's.
 */
export function hammer(baseUrl: string, tokens: readonly string[], loops: number): Hammer {
  const agent = new Agent({ keepAlive: true, maxSockets: loops });
  const expected = new Map<string, Expected>(tokens.map((token) => [token, 200]));
  const changes = new Map<string, number>(tokens.map((token) => [token, 0]));
  const counts: Hammer['counts'] = { accepted: 0, refused: 0, unavailable: 0, wrong: [] };
  let hot: readonly string[] = tokens.slice(0, 1);
  let probed = { hot: 0, others: 0, done: () => undefined as void };
  let stopped = false;

  async function probe(token: string): Promise<void> {
    const [must, change, round] = [expected.get(token), changes.get(token), probed];
    const status = await statusOf(agent, baseUrl, token);
    if (status === 503) return void counts.unavailable++;
    const certain = must !== undefined && change === changes.get(token);
    if (status === 200) counts.accepted += 1;
    else if (status === 401) counts.refused += 1;
    if (certain ? status !== must : status !== 200 && status !== 401)
      counts.wrong.push(`${status} in place of ${must}`);
    if (!certain) return;
    round[hot.includes(token) ? 'hot' : 'others'] += 1;
    if (round.hot >= PROBES && round.others >= PROBES) round.done();
  }

  async function loop(index: number): Promise<void> {
    for (let turn = index; !stopped; turn++) {
      const from = turn % 2 === 0 ? hot : tokens.filter((token) => !hot.includes(token));
      await probe(from[turn % from.length] as string);
    }
  }

  const running = Promise.all(Array.from({ length: loops }, (_, index) => loop(index)));
  return {
    counts,
    async change(changed, to, make) {
      hot = changed;
      const set = (value: Expected): void =>
        changed.forEach((token) => {
          expected.set(token, value);
          changes.set(token, (changes.get(token) as number) + 1);
        });
      set(undefined);
      await make();
      set(to);
      const enough = new Promise<void>((done) => (probed = { hot: 0, others: 0, done }));
      await Promise.race([enough, running]);
    },
    async stop() {
      stopped = true;
      await running;
      agent.destroy();
    },
  };
}

const statusOf = (agent: Agent, baseUrl: string, token: string): Promise<number> =>
  new Promise((resolve, reject) => {
    const sent = request(
      `${baseUrl}/api/memory/types`,
      { agent, headers: { Authorization: `Bearer ${token}` } },
      (response) => {
        response
          .on('end', () => resolve(response.statusCode as number))
          .on('error', reject)
          .resume();
      },
    );
    sent.on('error', reject).end();
  });
