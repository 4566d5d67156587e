import type { Reply } from './stack.ts';

/** Any UUIDv7, and any time, in an expected body. */
export const anId = expect.stringMatching(
  /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
) as unknown as string;
export const aTime = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/) as unknown as string;

/**
 * Fails unless the reply is the one error body: `{error, code, details?, requestId}` and, beside them, exactly these facts.
 * @param at JSON pointer that one of the details names
 */
export function expectRefusal(
  reply: Reply,
  status: number,
  code: string,
  { at, ...facts }: { at?: string; [fact: string]: unknown } = {},
): void {
  const { error, code: given, requestId, details = [], ...beside } = reply.body;
  expect({ status: reply.status, code: given, error }).toEqual({
    status,
    code,
    error: expect.stringMatching(/^\S.*\S$/),
  });
  expect(beside).toEqual(facts);
  expect(reply.headers.get('x-request-id')).toBe(requestId);
  expect(reply.headers.get('content-type')).toBe('application/json; charset=utf-8');
  for (const detail of details)
    expect(detail).toEqual({ path: expect.stringMatching(/^(\/.*)?$/), message: expect.stringMatching(/\S/) });
  if (at !== undefined) expect(pathsOf(reply)).toContain(at);
}

export const pathsOf = ({ body }: Reply): string[] => (body.details ?? []).map(({ path }: { path: string }) => path);
