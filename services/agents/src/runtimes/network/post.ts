import { Agent as HttpAgent, request as requestByHttp, type IncomingMessage } from 'node:http';
import { Agent as HttpsAgent, request as requestByHttps } from 'node:https';
import { makeBodyBuffer } from 'platform/core/body-buffer.ts';
import { untilAborted } from 'platform/core/until-aborted.ts';
import { ForbiddenAddressError, hasForbiddenAddress, isCallable, lookupOnly } from './addresses.ts';
import { lookupInTurn } from './lookup-in-turn.ts';
import type { Turns } from './turns.ts';

export interface Posted {
  status: number;
  headers: IncomingMessage['headers'];
  body: Buffer;
}

/** The message says what is wrong with an answer: "is too large". */
export class RefusedAnswerError extends Error {
  override readonly name = 'RefusedAnswerError';
}

export interface Poster {
  /**
   * Posts JSON text and reads the answer. Nothing is followed, decompressed or repeated.
   * @param given.organizationId in whose turn the name of the endpoint is looked up
   * @param given.maxBytes of the answer's body
   * @throws ForbiddenAddressError, RefusedAnswerError, the reason of `signal`, or an Error of the connection
   */
  post(
    url: URL,
    given: {
      organizationId: string;
      headers: Record<string, string>;
      body: string;
      maxBytes: number;
      signal: AbortSignal;
    },
  ): Promise<Posted>;
  /** Closes the connections that are kept. */
  close(): void;
}

/**
 * Unused connections that are kept to one host, and for how long. When more runs than this call it at once, the others
 * connect anew, which takes a quarter of their processor time.
 */
const KEPT = { keepAlive: true, maxFreeSockets: 64, timeout: 15_000, scheduling: 'lifo' } as const;

/** So many interim responses (RFC 9110, 15.2) may come before an answer: Node takes any number, and counts no byte. */
const MAX_INTERIM = 16;

/** The connection is no longer one of HTTP then. No request asks for that, so it counts as an answer without a body. */
const SWITCHING_PROTOCOLS = 101;

/**
 * @param networks that may be called beside the public internet, and without TLS
 * @param lookupTurns of all posters of the process
 */
export function makePoster(networks: readonly string[], lookupTurns: Turns): Poster {
  const http = new HttpAgent(KEPT);
  const https = new HttpsAgent(KEPT);

  return {
    async post(url, { organizationId, headers, body, maxBytes, signal }) {
      signal.throwIfAborted();
      if (hasForbiddenAddress(url, networks)) throw new ForbiddenAddressError();
      const { promise, resolve, reject } = Promise.withResolvers<Posted>();
      const options = {
        method: 'POST',
        lookup: lookupOnly(
          (address) => isCallable(address, url.protocol, networks),
          lookupInTurn(lookupTurns, organizationId, signal),
        ),
        headers: {
          ...headers,
          'content-type': 'application/json',
          'content-length': Buffer.byteLength(body),
          'accept-encoding': 'identity',
        },
      };
      const sent =
        url.protocol === 'https:'
          ? requestByHttps(url, { ...options, agent: https })
          : requestByHttp(url, { ...options, agent: http });
      sent.once('response', (answer) => {
        if (answer.statusCode !== SWITCHING_PROTOCOLS) return resolve(postedOf(answer, maxBytes));
        resolve(withoutBody(answer));
        sent.destroy();
      });
      // Without a listener Node closes the connection, and tells of no answer and no error.
      sent.once('upgrade', (answer, socket) => {
        resolve(withoutBody(answer));
        socket.destroy();
      });
      let interim = 0;
      sent.on('information', () => {
        if (++interim <= MAX_INTERIM) return;
        reject(new RefusedAnswerError('begins with too many interim responses'));
        sent.destroy();
      });
      // After an answer it is that which fails: what is resolved with its promise is rejected no more.
      sent.once('close', () => reject(closed()));
      sent.on('error', reject).end(body);
      try {
        return await untilAborted(signal, promise);
      } catch (error) {
        sent.destroy();
        signal.throwIfAborted();
        throw error;
      }
    },
    close() {
      http.destroy();
      https.destroy();
    },
  };
}

const withoutBody = ({ statusCode, headers }: IncomingMessage): Posted => ({
  status: statusCode!,
  headers,
  body: Buffer.alloc(0),
});

const postedOf = async (answer: IncomingMessage, maxBytes: number): Promise<Posted> => ({
  ...withoutBody(answer),
  body: await bodyOf(answer, maxBytes),
});

/** Rejects when the connection ends before the answer does. */
function bodyOf(answer: IncomingMessage, maxBytes: number): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  const body = makeBodyBuffer(Number(answer.headers['content-length'] ?? 0), maxBytes);
  // not `for await`, which would make promises for each chunk
  answer.on('data', (chunk: Buffer) => {
    const fault = body.add(chunk);
    if (fault === undefined) return;
    answer.destroy();
    reject(new RefusedAnswerError(fault === 'too large' ? 'is too large' : 'comes in too many small chunks'));
  });
  answer.once('end', () => resolve(body.bytes()));
  answer.once('error', reject);
  answer.once('close', () => reject(closed()));
  return promise;
}

const closed = (): Error => new Error('the connection was closed');
