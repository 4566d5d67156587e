import { ServiceError, invalid, requireText, type KnownReason } from 'platform/core/errors.ts';
import { parseJson } from 'platform/core/parse-json.ts';
import { strictJsonOf } from 'platform/json/strict-text.ts';
import type { Price } from '../definitions/rules.ts';
import { UNITS, type Usage } from '../runtimes/rules.ts';

const STATUSES = ['queued', 'running', 'succeeded', 'failed', 'cancelled', 'timed_out', 'interrupted'] as const;
export type Status = (typeof STATUSES)[number];
export type EndStatus = Exclude<Status, 'queued' | 'running'>;
/** Not final: `queued` is recorded and not known to be evaluated yet. All other statuses are final. */
export const ACTIVE: readonly Status[] = ['queued', 'running'];
export const ENDED: readonly Status[] = STATUSES.filter((status) => !ACTIVE.includes(status));
export const isActive = ({ status }: { status: Status }): boolean => ACTIVE.includes(status);

/** How a run ended; `error` is null only when it succeeded. */
export interface RunEnd {
  status: EndStatus;
  error: { reason: KnownReason; message: string } | null;
  usage: Usage;
}

export const INTERRUPTED: RunEnd = {
  status: 'interrupted',
  error: { reason: 'INTERNAL', message: 'The run was interrupted by the platform' },
  usage: {},
};

/** A run that failed by the platform's fault costs nothing: its reservation is released, not settled. */
export const isPlatformFault = ({ error }: Pick<RunEnd, 'error'>): boolean => error?.reason === 'INTERNAL';

/**
 * The charge in whole micro-credits, at most `maxMicros`: base price and metered units after success; only the metered
 * units after the agent's own failure, a time-out or a cancellation; nothing after a fault of the platform.
 */
export function chargeOf(price: Price, end: Pick<RunEnd, 'error' | 'usage'>): number {
  if (isPlatformFault(end)) return 0;
  const metered = UNITS.reduce((sum, unit) => sum + (end.usage[unit] ?? 0) * price.unitMicros[unit], 0);
  return Math.min(price.maxMicros, end.error ? metered : price.baseMicros + metered);
}

const MAX_ARGS_BYTES = 262_144;

/** What a stored execution takes beside its error, with its idempotency key and indexes, rounded up. */
const EXECUTION_BYTES = 2_048;
/** What a stored payload takes beside its texts, rounded up. */
const PAYLOAD_BYTES = 512;

/** The stored bytes of an execution without its payload, as the tier's limit `execution_bytes` counts them. */
export const executionBytes = ({ error }: Pick<RunEnd, 'error'>): number =>
  EXECUTION_BYTES + Buffer.byteLength(error?.message ?? '');

/** The stored bytes of a payload; its members are JSON text. */
export const payloadBytes = ({ args, ...result }: { args: string; output: string | null; messages: string }): number =>
  PAYLOAD_BYTES + Buffer.byteLength(args) + resultBytes(result);
export const resultBytes = ({ output, messages }: { output: string | null; messages: string }): number =>
  Buffer.byteLength(output ?? '') + Buffer.byteLength(messages);

export interface RunRequest {
  agentName: string;
  /** The args as the JSON text that the client sent. */
  argsText: string;
  /** The idempotency key. */
  key: string | undefined;
}

/** @throws ServiceError INVALID_REQUEST, with the path of the faulty member */
export function checkRunRequest(request: { agentName?: string; args?: string; idempotencyKey?: string }): RunRequest {
  const { args: argsText, idempotencyKey: key } = request;
  const agentName = requireText('agentName', request.agentName);
  if (argsText === undefined) throw invalid('/args', 'args is required');
  if (Buffer.byteLength(argsText) > MAX_ARGS_BYTES)
    throw invalid('/args', `args must have at most ${MAX_ARGS_BYTES} bytes as JSON`);
  if (key !== undefined && (key.length < 1 || key.length > 255))
    throw invalid('', 'Idempotency-Key must have 1 to 255 characters');
  return { agentName, argsText, key };
}

/**
 * Args by the rules for the bodies of requests (ADR 19), which the gateway keeps and the command line need not.
 * @returns the args, and their text as it is stored and given to agents
 * @throws ServiceError MALFORMED_JSON, INVALID_REQUEST
 */
export function readArgs({ argsText: given }: RunRequest): { args: unknown; argsText: string } {
  try {
    const argsText = strictJsonOf(given).toString();
    return { args: parseJson(argsText), argsText };
  } catch (cause) {
    const [violation] = cause instanceof ServiceError ? cause.details : [];
    if (violation) throw invalid(`/args${violation.path}`, violation.message);
    throw new ServiceError('MALFORMED_JSON', 'args is not valid JSON', {
      details: [{ path: '/args', message: 'is not valid JSON' }],
      cause,
    });
  }
}

/** @throws ServiceError INVALID_REQUEST */
export function checkStatus(given: string): Status {
  const status = STATUSES.find((known) => known === given);
  if (!status) throw invalid('/status', `status must be one of ${STATUSES.join(', ')}`);
  return status;
}
