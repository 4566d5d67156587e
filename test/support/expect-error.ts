import type { Reply } from './request.ts';

/** Matches any UUIDv7 in an expected body. */
export const anyId = expect.stringMatching(
  /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
) as unknown as string;
/** Matches any time in an expected body: ISO 8601, UTC, milliseconds. */
export const anyTime = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/) as unknown as string;

/**
 * Expects the error body `{error, code, details?, requestId}`, and beside these members exactly the given facts.
 * @param at JSON pointer that one of the details must name
 */
export function expectError(
  reply: Reply,
  status: number,
  code: string,
  { at, ...facts }: { at?: string; [fact: string]: unknown } = {},
): void {
  // a path that does not exist points to the reference
  const { error, code: given, requestId, details = [], reference = '/reference', ...beside } = reply.body;
  expect(reference).toBe('/reference');
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
  if (at !== undefined) expect(detailPaths(reply)).toContain(at);
}

/** JSON pointers of the details of an error body. */
export const detailPaths = ({ body }: Reply): string[] =>
  (body.details ?? []).map(({ path }: { path: string }) => path);
