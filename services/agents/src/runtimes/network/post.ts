import { Agent as HttpAgent, request as requestByHttp, type IncomingMessage } from 'node:http';
import { Agent as HttpsAgent, request as requestByHttps } from 'node:https';
import { ForbiddenAddressError, hasForbiddenAddress, isCallable, lookupOnly } from './addresses.ts';
import { lookupInTurn } from './lookup-in-turn.ts';
import type { Turns } from './turns.ts';

export interface Posted {
  status: number;
  headers: IncomingMessage['headers'];
  body: Buffer;
}

/** The body of an answer is larger than its limit. */
export class AnswerTooLargeError extends Error {
  override readonly name = 'AnswerTooLargeError';
}

export interface Poster {
  /**
   * Posts JSON text and reads the answer. Nothing is followed, decompressed or repeated.
   * @param given.organizationId in whose turn the name of the endpoint is looked up
   * @param given.maxBytes of the answer's body
   * @throws ForbiddenAddressError, AnswerTooLargeError, the reason of `signal`, or an Error of the connection
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

/** Connections that are kept for one host, and how long an unused one is kept. */
const KEPT = { keepAlive: true, maxFreeSockets: 8, timeout: 15_000, scheduling: 'lifo' } as const;

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
      const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
      const options = {
        method: 'POST',
        signal,
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
          ? requestByHttps(url, { ...options, agent: https }, resolve)
          : requestByHttp(url, { ...options, agent: http }, resolve);
      sent.on('error', reject).end(body);
      try {
        const answer = await promise;
        return { status: answer.statusCode!, headers: answer.headers, body: await bodyOf(answer, maxBytes) };
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

async function bodyOf(answer: IncomingMessage, maxBytes: number): Promise<Buffer> {
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of answer as AsyncIterable<Buffer>) {
    bytes += part.length;
    if (bytes > maxBytes) throw new AnswerTooLargeError();
    parts.push(part);
  }
  return Buffer.concat(parts);
}
