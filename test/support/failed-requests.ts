import type { Load, SentRequest } from './load.ts';

type FailedRequest = Pick<SentRequest, 'request' | 'status' | 'body' | 'tookMs'> & { logged: string[] };

/** The requests that were not acknowledged, each with the lines of `outputs` that name it. */
export function failedRequests(load: Load, outputs: readonly string[]): FailedRequest[] {
  const lines = outputs.flatMap((output) => output.split('\n'));
  return load.sent
    .filter(({ outcome }) => outcome !== 'acknowledged')
    .map(({ requestId, request, status, body, tookMs }) => ({
      ...{ request, status, body, tookMs },
      logged: lines.filter((line) => line.includes(requestId)),
    }));
}
