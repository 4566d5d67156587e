import { randomUUID } from 'node:crypto';

/** What the requests of the benchmarks do. */
export const KINDS = ['get', 'list', 'create', 'run'] as const;
export type Kind = (typeof KINDS)[number];

/** One server token, and the objects of its organization. */
export interface Access {
  /** Empty for a system that asks for no token. */
  token: string;
  objectIds: readonly string[];
}

export interface BenchRequest {
  kind: Kind;
  /** Head and body. */
  text: string;
}

/** Statuses of success. */
export const STATUS: Readonly<Record<Kind, number>> = { get: 200, list: 200, create: 201, run: 200 };
const TEXT = 'It is as long as what programs usually store. '.repeat(4);

/** The same request for every system. A get takes one of all objects at random. */
export function requestOf(kind: Kind, { token, objectIds }: Access): BenchRequest {
  const key = kind === 'create' || kind === 'run' ? randomUUID() : '';
  switch (kind) {
    case 'get':
      return { kind, text: httpText('GET', `/api/memory/objects/${anyOf(objectIds)}`, token) };
    case 'list':
      return { kind, text: httpText('GET', '/api/memory/objects?type=item', token) };
    case 'create':
      return { kind, text: httpText('POST', '/api/memory/objects', token, objectBody(key)) };
    case 'run':
      return { kind, text: httpText('POST', '/api/agent/run', token, { agentName: 'echo', args: { key } }) };
  }
}

export const anyOf = <T>(values: readonly T[]): T => values[Math.floor(Math.random() * values.length)] as T;

/** An object whose content has 300 bytes of JSON. */
const objectBody = (key: string): object => ({
  type: 'item',
  key,
  content: { name: `name of ${key}`, tags: ['a', 'b', 'c'], score: 4.5, active: true, note: null, text: TEXT },
});

export function httpText(method: string, path: string, token: string, body?: object): string {
  const head = `${method} ${path} HTTP/1.1\r\nHost: localhost\r\n`;
  const authorization = token === '' ? '' : `Authorization: Bearer ${token}\r\n`;
  if (body === undefined) return `${head}${authorization}\r\n`;
  const text = JSON.stringify(body);
  const type = `Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(text)}\r\n`;
  return `${head}${authorization}${type}\r\n${text}`;
}
