import { ServiceError, invalid, type KnownReason } from 'platform/core/errors.ts';

export const STATUSES = ['queued', 'running', 'succeeded', 'failed', 'cancelled', 'timed_out', 'interrupted'] as const;
export type Status = (typeof STATUSES)[number];
export type EndStatus = Exclude<Status, 'queued' | 'running'>;
/** `queued`: recorded, not seen to run yet. The others never change. */
export const ACTIVE: readonly Status[] = ['queued', 'running'];
export const ENDED: readonly Status[] = STATUSES.filter((status) => !ACTIVE.includes(status));
export const isActive = ({ status }: { status: Status }): boolean => ACTIVE.includes(status);

/** How a run ended; `error` is null exactly when it succeeded. */
export interface End {
  status: EndStatus;
  error: { reason: KnownReason; message: string } | null;
  steps: number;
}

export const INTERRUPTED: End = {
  status: 'interrupted',
  error: { reason: 'INTERNAL', message: 'The run was interrupted by the platform' },
  steps: 0,
};

/** A fault of the platform costs nothing: its reservation is released, not settled. */
export const isPlatformFault = ({ error }: Pick<End, 'error'>): boolean => error?.reason === 'INTERNAL';

/** Success: base and metered; the agent's own failure, time-out, cancel: metered; never more than max. Whole micro-credits. */
export function chargeOf(price: { baseMicros: number; maxMicros: number; stepMicros: number }, end: End): number {
  if (isPlatformFault(end)) return 0;
  const metered = end.steps * price.stepMicros;
  return Math.min(price.maxMicros, end.error ? metered : price.baseMicros + metered);
}

const ARGS_BYTES = 262_144;

export interface RunRequest {
  agentName: string;
  args: unknown;
  argsText: string;
  key: string | undefined;
}

/** @throws ServiceError 400 that names the member */
export function checkRunRequest(request: { agentName?: string; args?: string; idempotencyKey?: string }): RunRequest {
  const { agentName, args: argsText, idempotencyKey: key } = request;
  if (agentName === undefined) throw invalid('/agentName', 'is required');
  if (argsText === undefined) throw invalid('/args', 'is required');
  if (Buffer.byteLength(argsText) > ARGS_BYTES) throw invalid('/args', `must have at most ${ARGS_BYTES} bytes as JSON`);
  if (key !== undefined && (key.length < 1 || key.length > 255))
    throw invalid('', 'Idempotency-Key must have 1 to 255 characters');
  try {
    return { agentName, args: JSON.parse(argsText), argsText, key };
  } catch (cause) {
    throw new ServiceError('MALFORMED_JSON', 'args is not valid JSON', {
      details: [{ path: '/args', message: 'is not valid JSON' }],
      cause,
    });
  }
}

const PAGE_SIZE = { default: 20, max: 100 };

/** @throws ServiceError 400 */
export function checkPageSize(given: number | undefined): number {
  const pageSize = given ?? PAGE_SIZE.default;
  if (!Number.isInteger(pageSize) || pageSize < 1 || pageSize > PAGE_SIZE.max)
    throw invalid('/pageSize', `must be an integer from 1 to ${PAGE_SIZE.max}`);
  return pageSize;
}

/** @throws ServiceError 400 */
export function checkStatus(given: string): Status {
  const status = STATUSES.find((known) => known === given);
  if (!status) throw invalid('/status', `must be one of ${STATUSES.join(', ')}`);
  return status;
}
