import type { ServerResponse } from 'node:http';
import { HEADER_VALUE } from '../contract/transcode-request.ts';
import type { GatewayRequest } from './exchange.ts';
import { drainedOrClosed, STATIC_HEADERS } from './reply.ts';

const [LF, CR, SPACE] = [10, 13, 32];

export interface StreamedEvent {
  /** JSON text, in pieces. */
  data: readonly (Uint8Array | string)[];
  /** Where a client goes on from. Left out if it is no valid value of a header. */
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

/** A line break in JSON text is white space, and in an event the end of a field. */
function inOneLine(piece: Uint8Array | string): Uint8Array | string {
  if (typeof piece === 'string') return piece.replaceAll(/[\r\n]/g, ' ');
  const hasBreak = piece.includes(LF) || piece.includes(CR);
  return hasBreak ? piece.map((byte) => (byte === LF || byte === CR ? SPACE : byte)) : piece;
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
        // nginx would gather small events
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
      for (const piece of data) res.write(inOneLine(piece));
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
