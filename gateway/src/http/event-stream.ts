import type { ServerResponse } from 'node:http';
import { HEADER_VALUE } from '../contract/transcode-request.ts';
import type { GatewayRequest } from './exchange.ts';
import { drainedOrClosed, STATIC_HEADERS } from './reply.ts';

export interface StreamedEvent {
  /** In pieces of one line. */
  data: readonly (Uint8Array | string)[];
  /** Where a client goes on from. It is not told if the client could not send it back. */
  id?: string | undefined;
  name?: string;
}

/** A reply of Server-Sent Events (https://html.spec.whatwg.org/multipage/server-sent-events.html). */
export interface EventStream {
  /** Sends the event, and before the first one the status and the headers. Resolves when the next one may be sent. */
  send(event: StreamedEvent): Promise<void>;
  /** Shows that the connection lives, to the client and to what is between. */
  beat(): void;
  end(): void;
}

export function openEventStream(req: GatewayRequest, res: ServerResponse): EventStream {
  const isOpen = (): boolean => !res.destroyed && !res.writableEnded;
  /** @returns whether something may be written behind the headers */
  function open(): boolean {
    if (!isOpen()) return false;
    if (!res.headersSent) {
      res.writeHead(200, {
        ...STATIC_HEADERS,
        ...req.exchange.headers,
        'content-type': 'text/event-stream',
        // nginx would keep what it takes for too little
        'x-accel-buffering': 'no',
        connection: 'close',
      });
      res.flushHeaders();
    }
    return req.method !== 'HEAD';
  }
  return {
    async send({ data, id = '', name }) {
      if (!open()) return;
      if (name !== undefined) res.write(`event: ${name}\n`);
      if (HEADER_VALUE.test(id) && id === id.trim()) res.write(`id: ${id}\n`);
      res.write('data: ');
      for (const piece of data) res.write(piece);
      const mayGoOn = res.write('\n\n');
      if (!mayGoOn) await drainedOrClosed(res);
    },
    beat() {
      if (open()) res.write(':\n\n');
    },
    end() {
      open();
      if (isOpen()) res.end();
    },
  };
}
