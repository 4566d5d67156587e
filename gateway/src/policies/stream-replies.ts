import type { ServerResponse } from 'node:http';
import { ServiceError } from 'platform/core/errors.ts';
import { byteLength } from '../contract/json-text.ts';
import type { TranscodedResponse } from '../contract/transcode-response.ts';
import type { Permit } from '../http/byte-budget.ts';
import { openEventStream } from '../http/event-stream.ts';
import type { GatewayRequest } from '../http/exchange.ts';
import { EXPECTED_REPLY_BYTES, overBudget } from './admit.ts';

/** A stream without an event begins after this time, so that its client knows that it listens. */
const FIRST_BEAT_MS = 1_000;
const BEAT_MS = 15_000;
/** The largest event: a longer reply ends the stream. */
export const MAX_EVENT_BYTES = 1 << 20;

export interface StreamDeps {
  /** The gateway calls each of these functions when it is about to stop. */
  stops: Set<() => void>;
  isStopping(): boolean;
  /** Logs an error. @returns the body that tells it */
  report(error: unknown, req: GatewayRequest): string;
}

/**
 * Sends the replies of a server-streaming method as events, each when the client has taken the one before. A field of a
 * reply with the header Last-Event-ID is the id of its event, from which a client goes on. Before the first event or
 * beat an error is a reply of its own; a later one is an event named `failure`: EventSource has an `error` of its own.
 * A stream just ends when the gateway stops or with UNAVAILABLE: its deadline has passed, the service stops, or there
 * is no room for an event. Clients then connect again; a browser does so only after a status of 200.
 * @param replies their call is cancelled by `cancel`
 */
export async function streamReplies(
  req: GatewayRequest,
  res: ServerResponse,
  replies: AsyncIterable<TranscodedResponse>,
  cancel: () => void,
  { stops, isStopping, report }: StreamDeps,
): Promise<void> {
  const stream = openEventStream(req, res);
  if (isStopping()) return stream.end();
  const permit = req.exchange.permit as Permit;
  const stop = (): void => {
    cancel();
    // a client that takes nothing would hold up the stop
    if (res.writableNeedDrain) res.destroy();
  };
  stops.add(stop);
  // onClientGone is not called during a drain, because the gateway then closes connections itself
  res.once('close', cancel);
  req.exchange.watchClient?.();
  let beat = setTimeout(function repeat() {
    stream.beat();
    if (req.method === 'HEAD') return stop();
    beat = setTimeout(repeat, BEAT_MS);
  }, FIRST_BEAT_MS);
  try {
    for await (const { headers, body } of replies) {
      if (!permit.tryResize(EXPECTED_REPLY_BYTES + byteLength(body))) throw overBudget('no room for an event');
      await stream.send({ data: body, id: headers.find(({ name }) => name === 'Last-Event-ID')?.value });
      permit.resize(EXPECTED_REPLY_BYTES);
      if (req.method === 'HEAD') break;
    }
  } catch (error) {
    if (!isStopping() && !res.headersSent) throw error;
    if (!isStopping() && !res.destroyed && req.method !== 'HEAD') {
      const data = [report(error, req)];
      if (!isUnavailable(error)) await stream.send({ data, name: 'failure' });
    }
  } finally {
    clearTimeout(beat);
    stops.delete(stop);
  }
  stream.end();
}

const isUnavailable = (error: unknown): boolean => error instanceof ServiceError && error.reason === 'UNAVAILABLE';
