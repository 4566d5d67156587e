import { newId } from 'platform/core/ids.ts';
import { eventually } from 'platform/service/test-end.ts';
import { QUICK } from './load-settings.ts';
import { request, untilAvailable, type Reply } from './request.ts';

/** `rejected`: the service replied that nothing was done. `unknown`: it may have been done or not. */
export type Outcome = 'acknowledged' | 'rejected' | 'unknown';

/** One request that changes something, and the reply that its client got. */
export interface SentRequest {
  requestId: string;
  /** "POST /api/agent/run" */
  request: string;
  outcome: Outcome;
  status: number | undefined;
  /** From the start of the request to the end of the reply. */
  tookMs: number;
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- tests read bodies of every structure
  body: any;
  headers: Headers | undefined;
}
export interface SentRun extends SentRequest {
  agentName: string;
  args: { n: number };
  key: string | undefined;
  /** A repeat under the same key that ran again: later repeats must get its result. */
  rerun?: Pick<SentRequest, 'requestId' | 'outcome' | 'body'>;
}
/** One object, and the contents that it may have after the replies so far; undefined: it may not exist. */
export interface TrackedObject {
  key: string;
  id: string | undefined;
  possible: (object | undefined)[];
  /** Every content that it may have had at any time. */
  ever: (object | undefined)[];
  /** Acknowledged changes: "created", "updated", "deleted". */
  acknowledged: string[];
}

export interface Load {
  typeId: string;
  sent: SentRequest[];
  runs: SentRun[];
  objects: TrackedObject[];
  /** Resolves when this many more changes have been acknowledged. */
  untilAcknowledged(more: number): Promise<void>;
  /** Resolves when a request of each client has failed in the outage, so that all clients wait for its end. */
  untilAllClientsWait(): Promise<void>;
  /**
   * Makes clients wait until the outage is over before they send their next request: those whose request fails, or all.
   * @param outage resolves at its end
   */
  pauseDuring(outage: Promise<void>, whose?: 'failed' | 'all'): Promise<void>;
  /** @param at URL of the gateway; by default the gateways take turns */
  run(agentName: string, args: { n: number }, key?: string, at?: string): Promise<SentRun>;
  /**
   * Sends further requests at every gateway until `isOver()`: one client creates objects, one runs an agent with keys.
   * These clients do not wait for the end of an outage.
   */
  requestUntil(isOver: () => boolean): Promise<void>;
  /** Starts no further request; resolves when the last one has ended. */
  stop(): Promise<void>;
}

interface SendOptions {
  /** URL of the gateway. */
  at?: string;
  /** Wait for the end of an outage in which the request fails; true by default. */
  waits?: boolean;
}

/**
 * Starts clients that create, update and delete objects and run an agent, with and without a key, until they are
 * stopped. Several gateways take turns.
 * @param options.ask by default sends the request once
 */
export async function startLoad({
  baseUrl,
  token,
  clients,
  ask = request,
}: {
  baseUrl: string | readonly string[];
  token: string;
  clients: number;
  ask?: typeof request;
}): Promise<Load> {
  let turn = 0;
  const gateways = typeof baseUrl === 'string' ? [baseUrl] : baseUrl;
  const gateway = (): string => gateways[turn++ % gateways.length] as string;
  const [sent, runs, objects]: [SentRequest[], SentRun[], TrackedObject[]] = [[], [], []];
  const counting: { count: number; resolve(): void }[] = [];
  const whenAllWait: (() => void)[] = [];
  let [acknowledged, stopping, outage, waitingClients, allClientsWait] = [0, false, Promise.resolve(), 0, false];
  const created = await untilAvailable(() =>
    request(gateway(), 'POST', '/api/memory/types', {
      token,
      body: { type: `T${newId()}`, jsonSchema: { type: 'object' } },
    }),
  );
  if (created.status !== 201) throw new Error(`The memory type was not created: ${created.status} ${created.text}`);
  const typeId: string = created.body.id;

  async function send(
    method: string,
    path: string,
    body?: object,
    headers: Record<string, string> = {},
    { at = gateway(), waits = true }: SendOptions = {},
  ): Promise<SentRequest> {
    const [requestId, from] = [newId(), performance.now()];
    const reply = await ask(at, method, path, {
      token,
      body,
      headers: { ...headers, 'X-Request-Id': requestId },
    }).catch(() => undefined);
    const tookMs = performance.now() - from;
    const result = {
      requestId,
      request: `${method} ${path}`,
      outcome: outcomeOf(reply),
      status: reply?.status,
      tookMs,
      body: reply?.body,
      headers: reply?.headers,
    };
    sent.push(result);
    if (result.outcome === 'acknowledged') {
      acknowledged += 1;
      for (const { count, resolve } of counting) if (acknowledged >= count) resolve();
    }
    if (waits && (result.outcome !== 'acknowledged' || allClientsWait)) {
      waitingClients += 1;
      if (waitingClients === clients) for (const resolve of whenAllWait.splice(0)) resolve();
      await outage;
      waitingClients -= 1;
    }
    return result;
  }

  async function change(
    object: TrackedObject,
    verb: string,
    next: object | undefined,
    sending: Promise<SentRequest>,
  ): Promise<void> {
    const { outcome, body } = await sending;
    object.ever.push(next);
    if (outcome === 'acknowledged') {
      object.possible = [next];
      object.acknowledged.push(verb);
      object.id ??= body.id;
    } else if (outcome === 'unknown') {
      object.possible.push(next);
    }
  }

  async function create(key: string, content: object, options?: SendOptions): Promise<TrackedObject> {
    const object: TrackedObject = { key, id: undefined, possible: [undefined], ever: [undefined], acknowledged: [] };
    objects.push(object);
    const sending = send('POST', '/api/memory/objects', { typeId, key, content }, {}, options);
    await change(object, 'created', content, sending);
    return object;
  }

  const run = async (agentName: string, args: { n: number }, key?: string, options?: SendOptions): Promise<SentRun> => {
    const result = await send(
      'POST',
      '/api/agent/run',
      { agentName, args },
      key === undefined ? {} : { 'Idempotency-Key': key },
      options,
    );
    const record: SentRun = { ...result, agentName, args, key };
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
    async requestUntil(isOver) {
      const repeat = (send: () => Promise<unknown>): Promise<boolean> =>
        eventually(async () => {
          await send();
          return isOver();
        });
      await Promise.all(
        gateways
          .map((at) => ({ at, waits: false }))
          .flatMap((options) => [
            repeat(() => create(`extra/${newId()}`, { text: 'extra' }, options)),
            repeat(() => run(QUICK, { n: 1 }, newId(), options)),
          ]),
      );
    },
    untilAcknowledged: (more) =>
      Promise.race([running, new Promise<void>((resolve) => counting.push({ count: acknowledged + more, resolve }))]),
    untilAllClientsWait: () =>
      Promise.race([
        running,
        new Promise<void>((resolve) => (waitingClients === clients ? resolve() : whenAllWait.push(resolve))),
      ]),
    pauseDuring(ends, whose = 'failed') {
      allClientsWait = whose === 'all';
      return (outage = ends.finally(() => (allClientsWait = false)));
    },
    stop() {
      stopping = true;
      return running;
    },
  };
}

/** @throws Error for a reply that no failure of a process or an engine explains */
function outcomeOf(reply: Reply | undefined): Outcome {
  if (reply === undefined) return 'unknown';
  const { status, body, text, headers } = reply;
  if (status === 200 || status === 201) return 'acknowledged';
  if (status === 503 && body.code === 'unavailable' && Number(headers.get('retry-after')) > 0) return 'rejected';
  if (status === 504 && body.code === 'outcome_unknown') return 'unknown';
  // the reply for a run that the platform lost, with the id of its execution
  if (status === 500 && body.code === 'internal' && body.agentExecutionId !== undefined) return 'unknown';
  throw new Error(`${status} ${text} (Retry-After: ${headers.get('retry-after')})`);
}
