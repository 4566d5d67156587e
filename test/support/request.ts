import { expectDocumented } from './documented-replies.ts';
import { noteBearer } from './secret-search.ts';

export interface Reply {
  /** Scheme and host of the gateway that answered. */
  origin: string;
  status: number;
  headers: Headers;
  text: string;
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- tests read bodies of every structure
  body: any;
}

export async function request(
  baseUrl: string,
  method: string,
  path: string,
  {
    token,
    body,
    headers = {},
    signal,
  }: { token?: string; body?: unknown; headers?: Record<string, string>; signal?: AbortSignal } = {},
): Promise<Reply> {
  if (token !== undefined) noteBearer(token);
  const response = await fetch(baseUrl + path, {
    method,
    signal,
    headers: {
      ...(token === undefined ? {} : { Authorization: `Bearer ${token}` }),
      ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
      ...headers,
    },
    body: body === undefined ? undefined : typeof body === 'string' ? body : JSON.stringify(body),
  });
  const text = await response.text();
  const reply = {
    origin: new URL(response.url).origin,
    status: response.status,
    headers: response.headers,
    text,
    body: text === '' ? undefined : JSON.parse(text),
  };
  expectDocumented(method, response.url, reply);
  return reply;
}

const MAX_ATTEMPTS = 5;

/**
 * Sends a request again after 503 `unavailable`, which means that nothing was done. A busy machine causes it when it
 * stalls for longer than the 3 s that authentication may take.
 */
export async function untilAvailable(send: () => Promise<Reply>): Promise<Reply> {
  for (let attempt = 1; ; attempt++) {
    const reply = await send();
    const retryAfterS = Number(reply.headers.get('retry-after'));
    if (reply.status !== 503 || reply.body.code !== 'unavailable' || !(retryAfterS > 0) || attempt === MAX_ATTEMPTS)
      return reply;
    process.stdout.write(`503, sent again: ${reply.text}\n`);
    await new Promise((resolve) => setTimeout(resolve, retryAfterS * 1000));
  }
}
