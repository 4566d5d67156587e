import createClient, { type Client } from 'openapi-fetch';
import type { components, paths } from './contract.ts';

export type { components, operations, paths } from './contract.ts';

/** The schemas of the OpenAPI document by name, such as `Schemas['MemoryObject']`. */
export type Schemas = components['schemas'];

export interface ClientOptions {
  /** Scheme and host of the service, such as `https://api.example.com`. */
  baseUrl: string;
  /** A server token or a JWT; it goes into the Authorization header alone. */
  token: string;
  /** Used in place of the global `fetch`. */
  fetch?: (request: Request) => Promise<Response>;
}

/**
 * A client whose paths, members and answers have the types of the contract. Each call resolves to `{ data, response }`
 * or `{ error, response }`; it rejects only when there is no answer. It repeats nothing by itself.
 */
export function openClient({ baseUrl, token, fetch }: ClientOptions): Client<paths> {
  return createClient<paths>({ baseUrl, headers: { Authorization: `Bearer ${token}` }, ...(fetch && { fetch }) });
}
