import { newId } from 'platform/core/ids.ts';
import { request, untilAvailable, type Reply } from '../support/stack.ts';

/** `refused`: by the service's word nothing was done. `unknown`: it may be done or not. */
export type Outcome = 'done' | 'refused' | 'unknown';

/** One request that would change something, and what its client was told. */
export interface Sent {
  requestId: string;
  /** "POST /api/agent/run" */
  what: string;
  outcome: Outcome;
  status: number | undefined;
  /** From the request to the end of its answer. */
  tookMs: number;
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- tests look into bodies of every shape
  body: any;
  headers: Headers | undefined;
}
export interface SentRun extends Sent {
  agentName: string;
  args: { n: number };
  key: string | undefined;
  /** A repeat that ran anew: from then on it is what the key stands for. */
  anew?: Pick<Sent, 'requestId' | 'outcome' | 'body'>;
}
/** One object, and the contents that it may have now by what its client was told; undefined: it does not exist. */
export interface Tracked {
  key: string;
  id: string | undefined;
  possible: (object | undefined)[];
  /** Acknowledged changes: "created", "updated", "deleted". */
  acknowledged: string[];
}

export interface Load {
  typeId: string;
  sent: Sent[];
  runs: SentRun[];
  objects: Tracked[];
  /** Resolves when that many more changes have been acknowledged. */
  untilAcknowledged(more: number): Promise<void>;
  /** Resolves when every client has had a request fail in the outage, so waits for its end. */
  untilAllWait(): Promise<void>;
  /** Clients whose request fails wait for its end before they go on; or all of them, each after its present request. */
  during(outage: Promise<void>, whose?: 'failed' | 'all'): Promise<void>;
  /** @param at the gateway that is asked */
  run(agentName: string, args: { n: number }, key?: string, at?: string): Promise<SentRun>;
  /** Besides those clients, one at every gateway that creates and one that runs by key, until it is over; they wait for the end of no outage. */
  askUntil(isOver: () => boolean): Promise<void>;
  /** No request starts after this; resolves when the last has ended. */
  stop(): Promise<void>;
}

export const QUICK = 'quick';

/** @param at the gateway that is asked @param waits when it fails in an outage, for the end of that */
interface Asking {
  at?: string;
  waits?: boolean;
}

/** Clients that create, update and delete objects and run an agent, with and without a key, until stopped; at several gateways in turn. */
export async function startLoad({
  baseUrl,
  token,
  clients,
}: {
  baseUrl: string | readonly string[];
  token: string;
  clients: number;
}): Promise<Load> {
  let turn = 0;
  const gateways = typeof baseUrl === 'string' ? [baseUrl] : baseUrl;
  const gateway = (): string => gateways[turn++ % gateways.length] as string;
  const [sent, runs, objects]: [Sent[], SentRun[], Tracked[]] = [[], [], []];
  const waiting: { count: number; resolve(): void }[] = [];
  const allWait: (() => void)[] = [];
  let [acknowledged, stopping, outage, held, holdAll] = [0, false, Promise.resolve(), 0, false];
  const made = await untilAvailable(() =>
    request(gateway(), 'POST', '/api/memory/types', {
      token,
      body: { type: `T${newId()}`, jsonSchema: { type: 'object' } },
    }),
  );
  if (made.status !== 201) throw new Error(`type: ${made.status} ${made.text}`);
  const typeId: string = made.body.id;

  async function send(
    method: string,
    path: string,
    body?: object,
    headers: Record<string, string> = {},
    { at = gateway(), waits = true }: Asking = {},
  ): Promise<Sent> {
    const [requestId, from] = [newId(), performance.now()];
    const reply = await request(at, method, path, {
      token,
      body,
      headers: { ...headers, 'X-Request-Id': requestId },
    }).catch(() => undefined);
    const tookMs = performance.now() - from;
    const change = {
      requestId,
      what: `${method} ${path}`,
      outcome: outcomeOf(reply),
      status: reply?.status,
      tookMs,
      body: reply?.body,
      headers: reply?.headers,
    };
    sent.push(change);
    if (change.outcome === 'done') {
      acknowledged += 1;
      for (const { count, resolve } of waiting) if (acknowledged >= count) resolve();
    }
    if (waits && (change.outcome !== 'done' || holdAll)) {
      held += 1;
      if (held === clients) for (const resolve of allWait.splice(0)) resolve();
      await outage;
      held -= 1;
    }
    return change;
  }

  async function change(
    object: Tracked,
    verb: string,
    next: object | undefined,
    sending: Promise<Sent>,
  ): Promise<void> {
    const { outcome, body } = await sending;
    if (outcome === 'done') {
      object.possible = [next];
      object.acknowledged.push(verb);
      object.id ??= body.id;
    } else if (outcome === 'unknown') {
      object.possible.push(next);
    }
  }

  async function create(key: string, content: object, asking?: Asking): Promise<Tracked> {
    const object: Tracked = { key, id: undefined, possible: [undefined], acknowledged: [] };
    objects.push(object);
    await change(object, 'created', content, send('POST', '/api/memory/objects', { typeId, key, content }, {}, asking));
    return object;
  }

  const run = async (agentName: string, args: { n: number }, key?: string, asking?: Asking): Promise<SentRun> => {
    const change = await send(
      'POST',
      '/api/agent/run',
      { agentName, args },
      key === undefined ? {} : { 'Idempotency-Key': key },
      asking,
    );
    const record: SentRun = { ...change, agentName, args, key };
    runs.push(record);
    return record;
  };

  async function client(name: number): Promise<void> {
    for (let turn = 0; !stopping; turn++) {
      const content = (revision: number): object => ({ client: name, turn, revision, text: 'ünïcode \u2028 ✓' });
      const kept = await create(`${name}/${turn}/kept`, content(1));
      const dropped = stopping ? undefined : await create(`${name}/${turn}/dropped`, content(1));
      if (kept.id !== undefined && !stopping)
        await change(
          kept,
          'updated',
          content(2),
          send('PATCH', `/api/memory/objects/${kept.id}`, { content: content(2) }),
        );
      if (dropped?.id !== undefined && !stopping)
        await change(dropped, 'deleted', undefined, send('DELETE', `/api/memory/objects/${dropped.id}`));
      if (!stopping) await run(QUICK, { n: turn });
      if (!stopping) await run(QUICK, { n: turn }, newId());
    }
  }

  const running = Promise.all(Array.from({ length: clients }, (_, index) => client(index))).then(() => undefined);
  running.catch(() => undefined);
  return {
    typeId,
    sent,
    runs,
    objects,
    run: (agentName, args, key, at) => run(agentName, args, key, { at }),
    async askUntil(isOver) {
      const again = async (ask: () => Promise<unknown>): Promise<void> => {
        do await ask();
        while (!isOver());
      };
      await Promise.all(
        gateways
          .map((at) => ({ at, waits: false }))
          .flatMap((asking) => [
            again(() => create(`asked/${newId()}`, { text: 'asked' }, asking)),
            again(() => run(QUICK, { n: 1 }, newId(), asking)),
          ]),
      );
    },
    untilAcknowledged: (more) =>
      Promise.race([running, new Promise<void>((resolve) => waiting.push({ count: acknowledged + more, resolve }))]),
    untilAllWait: () =>
      Promise.race([running, new Promise<void>((resolve) => (held === clients ? resolve() : allWait.push(resolve)))]),
    during(ends, whose = 'failed') {
      holdAll = whose === 'all';
      return (outage = ends.finally(() => (holdAll = false)));
    },
    stop() {
      stopping = true;
      return running;
    },
  };
}

/** @throws Error for an answer that no failure of a part explains */
function outcomeOf(reply: Reply | undefined): Outcome {
  if (reply === undefined) return 'unknown';
  const { status, body, text, headers } = reply;
  if (status === 200 || status === 201) return 'done';
  if (status === 503 && body.code === 'unavailable' && Number(headers.get('retry-after')) > 0) return 'refused';
  if (status === 504 && body.code === 'outcome_unknown') return 'unknown';
  // a run that the platform lost is a 500 that says so
  if (status === 500 && body.code === 'internal' && body.agentExecutionId !== undefined) return 'unknown';
  throw new Error(`${status} ${text} (Retry-After: ${headers.get('retry-after')})`);
}
