import { Agent, request } from 'node:http';

/** The status that a request which starts now must get; undefined during a change of its token. */
type Expected = 200 | 401 | undefined;

/** Requests with changed tokens after each change, and as many with the other tokens, before the next change. */
const REQUESTS_PER_CHANGE = 192;

export interface RevocationProbe {
  /** Number of replies 200, 401 and 503, which says nothing about the token, and a description of each wrong reply. */
  counts: { accepted: number; rejected: number; unavailable: number; wrong: string[] };
  /**
   * Applies a change while requests are in flight; resolves when enough requests that started after it were answered.
   * @param to status of these tokens' requests after the change
   */
  change(tokens: readonly string[], to: 200 | 401, apply: () => Promise<unknown>): Promise<void>;
  stop(): Promise<void>;
}

/**
 * Starts loops of requests over as many keep-alive connections, which alternate between the tokens of the last change
 * and the other tokens. A reply is wrong when its token was not being changed at any time between the start and the end
 * of the request, and the status is not the one expected of that token.
 */
export function startRevocationProbe(baseUrl: string, tokens: readonly string[], loops: number): RevocationProbe {
  const agent = new Agent({ keepAlive: true, maxSockets: loops });
  const expected = new Map<string, Expected>(tokens.map((token) => [token, 200]));
  const changes = new Map<string, number>(tokens.map((token) => [token, 0]));
  const counts: RevocationProbe['counts'] = { accepted: 0, rejected: 0, unavailable: 0, wrong: [] };
  let changedTokens: readonly string[] = tokens.slice(0, 1);
  let sinceChange = { changed: 0, others: 0, done: () => undefined as void };
  let stopped = false;

  async function probe(token: string): Promise<void> {
    const [wanted, change, round] = [expected.get(token), changes.get(token), sinceChange];
    const status = await statusOf(agent, baseUrl, token);
    if (status === 503) return void counts.unavailable++;
    const certain = wanted !== undefined && change === changes.get(token);
    if (status === 200) counts.accepted += 1;
    else if (status === 401) counts.rejected += 1;
    if (certain ? status !== wanted : status !== 200 && status !== 401)
      counts.wrong.push(`${status} in place of ${wanted}`);
    if (!certain) return;
    round[changedTokens.includes(token) ? 'changed' : 'others'] += 1;
    if (round.changed >= REQUESTS_PER_CHANGE && round.others >= REQUESTS_PER_CHANGE) round.done();
  }

  async function loop(index: number): Promise<void> {
    for (let turn = index; !stopped; turn++) {
      const from = turn % 2 === 0 ? changedTokens : tokens.filter((token) => !changedTokens.includes(token));
      await probe(from[turn % from.length] as string);
    }
  }

  const running = Promise.all(Array.from({ length: loops }, (_, index) => loop(index)));
  return {
    counts,
    async change(changed, to, apply) {
      changedTokens = changed;
      const set = (value: Expected): void =>
        changed.forEach((token) => {
          expected.set(token, value);
          changes.set(token, (changes.get(token) as number) + 1);
        });
      set(undefined);
      await apply();
      set(to);
      const enough = new Promise<void>((done) => (sinceChange = { changed: 0, others: 0, done }));
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
