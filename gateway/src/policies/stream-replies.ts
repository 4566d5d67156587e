import type { ServerResponse } from 'node:http';
import { ServiceError, unavailable } from 'platform/core/errors.ts';
import type { TranscodedResponse } from '../contract/transcode-response.ts';
import { openEventStream } from '../http/event-stream.ts';
import type { GatewayRequest } from '../http/exchange.ts';

const BEAT_MS = 15_000;

export interface StreamDeps {
  /** The gateway calls each of these functions when it is about to stop. */
  stops: Set<() => void>;
  /** Logs an error. @returns the body that tells it */
  report(error: unknown, req: GatewayRequest): string;
}

/**
 * Sends the replies of a server-streaming method as events, each when the client has taken the one before. A field of a
 * reply with the header Last-Event-ID is the id of its event, from which a client goes on. Before the first event or
 * beat an error is a reply of its own; a later one is an event named `error`. When the service or the gateway stops, or
 * the deadline passes, the stream just ends: clients connect again.
 * @param replies their call is cancelled by `cancel`
 */
export async function streamReplies(
  req: GatewayRequest,
  res: ServerResponse,
  replies: AsyncIterable<TranscodedResponse>,
  cancel: () => void,
  { stops, report }: StreamDeps,
): Promise<void> {
  const stream = openEventStream(req, res);
  const beat = setInterval(() => stream.beat(), BEAT_MS);
  req.exchange.watchClient?.();
  let isStopping = false;
  const stop = (): void => {
    isStopping = true;
    cancel();
  };
  stops.add(stop);
  try {
    for await (const { headers, body } of replies) {
      const id = headers.find(({ name }) => name === 'Last-Event-ID')?.value ?? '';
      await stream.event(Buffer.concat(body).toString(), id);
      if (req.method === 'HEAD') break;
    }
  } catch (error) {
    if (!res.headersSent) throw isStopping ? unavailable('The gateway stops', 'a stream') : error;
    if (!isEnd(error)) await stream.event(report(error, req), '', 'error');
  } finally {
    clearInterval(beat);
    stops.delete(stop);
  }
  stream.end();
}

/** The replies have not come to their end, but nothing has failed. */
const isEnd = (error: unknown): boolean =>
  error instanceof ServiceError && ['CLIENT_GONE', 'UNAVAILABLE'].includes(error.reason);
