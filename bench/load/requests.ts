import { randomUUID } from 'node:crypto';

/** What the requests of the benchmarks do. */
export const KINDS = ['get', 'list', 'create', 'run', 'filtered', 'deep', 'update', 'upsert'] as const;
export type Kind = (typeof KINDS)[number];

export interface BenchObject {
  id: string;
  key: string;
}

/** One bearer, and the objects of its organization. */
export interface Access {
  /** Empty for a system that asks for no token. */
  token: string;
  objects: readonly BenchObject[];
  /** The cursor of the page that follows this object in the list of all. */
  cursorAfter?(object: BenchObject): string;
}

export interface BenchRequest {
  kind: Kind;
  /** Head and body. */
  text: string;
}

/** Statuses of success. */
export const STATUS: Readonly<Record<Kind, number>> = {
  ...{ get: 200, list: 200, create: 201, run: 200 },
  ...{ filtered: 200, deep: 200, update: 200, upsert: 200 },
};
const LIST = '/api/memory/objects?type=item';
const TEXT = 'It is as long as what programs usually store. '.repeat(4);

/**
 * The same request for every system; the product alone knows the last four kinds. A request for an object takes one of
 * all at random.
 */
export function requestOf(kind: Kind, { token, objects, cursorAfter }: Access): BenchRequest {
  const object = kind === 'create' || kind === 'run' ? { id: '', key: randomUUID() } : anyOf(objects);
  const { id, key } = object;
  const request = (...rest: [method: string, path: string, body?: object]): BenchRequest => {
    const [method, path, body] = rest;
    return { kind, text: httpText(method, path, token, body) };
  };
  switch (kind) {
    case 'get':
      return request('GET', `/api/memory/objects/${id}`);
    case 'list':
      return request('GET', LIST);
    case 'filtered':
      return request('GET', `${LIST}&key=${key}`);
    case 'deep':
      return request('GET', `${LIST}&cursor=${cursorAfter!(object)}`);
    case 'create':
      return request('POST', '/api/memory/objects', objectBody(key));
    case 'upsert':
      return request('POST', '/api/memory/objects?upsert=true', objectBody(key));
    case 'update':
      return request('PATCH', `/api/memory/objects/${id}`, { content: contentOf(key) });
    case 'run':
      return request('POST', '/api/agent/run', { agentName: 'echo', args: { key } });
  }
}

export const anyOf = <T>(values: readonly T[]): T => values[Math.floor(Math.random() * values.length)] as T;

const objectBody = (key: string): object => ({ type: 'item', key, content: contentOf(key) });

/** 300 bytes of JSON; never the same, because a change that changes nothing leaves no event. */
const contentOf = (key: string): object => ({
  name: `name of ${key}`,
  tags: ['a', 'b', 'c'],
  score: Math.random(),
  active: true,
  note: null,
  text: TEXT,
});

export function httpText(method: string, path: string, token: string, body?: object): string {
  const head = `${method} ${path} HTTP/1.1\r\nHost: localhost\r\n`;
  const authorization = token === '' ? '' : `Authorization: Bearer ${token}\r\n`;
  if (body === undefined) return `${head}${authorization}\r\n`;
  const text = JSON.stringify(body);
  const type = `Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(text)}\r\n`;
  return `${head}${authorization}${type}\r\n${text}`;
}
