import type { ServerResponse } from 'node:http';
import type { GatewayRequest } from './exchange.ts';
import { drainedOrClosed, STATIC_HEADERS } from './reply.ts';

/** A reply of Server-Sent Events (https://html.spec.whatwg.org/multipage/server-sent-events.html). */
export interface EventStream {
  /** Sends the status and the headers, unless they are sent. */
  open(): void;
  /** Resolves when the next event may be sent. @param id where a client goes on from; empty: it is not told */
  event(data: string, id: string, name?: string): Promise<void>;
  /** Shows that the connection lives, to the client and to what is between. */
  beat(): void;
  end(): void;
}

export function openEventStream(req: GatewayRequest, res: ServerResponse): EventStream {
  const isOpen = (): boolean => !res.destroyed && !res.writableEnded;
  const stream: EventStream = {
    open() {
      if (res.headersSent || !isOpen()) return;
      res.writeHead(200, {
        ...STATIC_HEADERS,
        ...req.exchange.headers,
        'content-type': 'text/event-stream',
        // nginx would keep what it takes for too little
        'x-accel-buffering': 'no',
        connection: 'close',
      });
      res.flushHeaders();
    },
    async event(data, id, name) {
      stream.open();
      if (!isOpen() || req.method === 'HEAD') return;
      const lines = [
        ...(name === undefined ? [] : [`event: ${name}`]),
        ...(id === '' || /[\0\r\n]/.test(id) ? [] : [`id: ${id}`]),
        ...data.split(/\r\n|\r|\n/).map((line) => `data: ${line}`),
      ];
      if (!res.write(`${lines.join('\n')}\n\n`)) await drainedOrClosed(res);
    },
    beat() {
      stream.open();
      if (isOpen() && req.method !== 'HEAD') res.write(':\n\n');
    },
    end() {
      stream.open();
      if (isOpen()) res.end();
    },
  };
  return stream;
}
