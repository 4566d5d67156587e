import { strict as assert } from 'node:assert';
import { Metadata, status, type ServiceError as GrpcError } from '@grpc/grpc-js';
import type { Any } from 'proto/google/protobuf/any.ts';
import { BadRequest, ErrorInfo } from 'proto/google/rpc/error_details.ts';
import { Status } from 'proto/google/rpc/status.ts';
import { parseJson } from '../core/parse-json.ts';
import { ERRORS, ServiceError, type KnownReason } from '../core/errors.ts';

/** The trailer in which gRPC tools expect google.rpc.Status (https://cloud.google.com/apis/design/errors). */
const TRAILER = 'grpc-status-details-bin';
const DOMAIN = 'agent-and-memory-service';
/** ErrorInfo.metadata holds reply headers under this prefix, and facts, as JSON text, under their own names. */
const HEADER = 'header-';
const MAX_TRAILER_BYTES = 32_768;
const NEVER_SENT =
  /No connection established|Name resolution failed|channel has been closed|Channel closed before call started|Stream refused by server/i;
/**
 * What a reason of a later release is here, by its gRPC code: the plainest one of those with that code that need no
 * facts.
 */
const PLAINEST: Partial<Record<number, KnownReason>> = {
  [status.INVALID_ARGUMENT]: 'INVALID_REQUEST',
  [status.UNAUTHENTICATED]: 'UNAUTHENTICATED',
  [status.PERMISSION_DENIED]: 'FORBIDDEN',
  [status.NOT_FOUND]: 'NOT_FOUND',
  [status.ALREADY_EXISTS]: 'ALREADY_EXISTS',
  [status.FAILED_PRECONDITION]: 'CONFLICT',
  [status.ABORTED]: 'CONFLICT',
  [status.RESOURCE_EXHAUSTED]: 'RATE_LIMITED',
  [status.UNAVAILABLE]: 'UNAVAILABLE',
  [status.DEADLINE_EXCEEDED]: 'OUTCOME_UNKNOWN',
};

const anyOf = <M>(type: string, codec: { encode(message: M): { finish(): Uint8Array } }, message: M): Any => ({
  typeUrl: `type.googleapis.com/${type}`,
  value: Buffer.from(codec.encode(message).finish()),
});

/** A ServiceError as google.rpc.Status with ErrorInfo; with BadRequest, too, when the error has details. */
export function toStatus({
  reason,
  message,
  details,
  facts,
  headers,
}: Omit<ServiceError, 'name' | 'stack' | 'cause'>): Status {
  assert.ok(!Object.keys(facts).some((name) => name.startsWith(HEADER)), 'a fact is named like a header');
  const known = Object.entries(facts).filter(([, value]) => value !== undefined);
  const metadata = Object.fromEntries([
    ...known.map(([name, value]) => [name, JSON.stringify(value)]),
    ...Object.entries(headers).map(([name, value]) => [`${HEADER}${name}`, value]),
  ]);
  const info = anyOf('google.rpc.ErrorInfo', ErrorInfo, { reason, domain: DOMAIN, metadata });
  const fieldViolations = details.map(({ path, message: description }) => ({ field: path, description, reason: '' }));
  const violations = details.length > 0 ? [anyOf('google.rpc.BadRequest', BadRequest, { fieldViolations })] : [];
  return { code: ERRORS[reason].grpc, message, details: [info, ...violations] };
}

/** Undefined for a status of other software, which has no ErrorInfo of our domain. */
export function fromStatus({ code, message, details }: Status): ServiceError | undefined {
  const find = (type: string) => details.find(({ typeUrl }) => typeUrl.endsWith(`/google.rpc.${type}`))?.value;
  const info = ErrorInfo.decode(find('ErrorInfo') ?? new Uint8Array());
  if (info.domain !== DOMAIN) return undefined;
  const facts: Record<string, unknown> = {};
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(info.metadata)) {
    if (name.startsWith(HEADER)) headers[name.slice(HEADER.length)] = value;
    else facts[name] = parseJson(value);
  }
  const { fieldViolations } = BadRequest.decode(find('BadRequest') ?? new Uint8Array());
  return new ServiceError(knownReason(info.reason) ?? PLAINEST[code] ?? 'INTERNAL', message, {
    details: fieldViolations.map(({ field, description }) => ({ path: field, message: description })),
    facts,
    headers,
  });
}

const knownReason = (reason: string): KnownReason | undefined =>
  Object.hasOwn(ERRORS, reason) ? (reason as KnownReason) : undefined;

/** Nothing was done: the service is of a release without this method. Another replica may have it. */
export const unknownMethod = (method: string): ServiceError =>
  new ServiceError('UNAVAILABLE', 'The service is of a release that does not have this method', {
    headers: { 'Retry-After': '1' },
    cause: new Error(`${method} is unknown`),
  });

/** Headers that are too large end the HTTP/2 session with all calls in it: the last violations are left out instead. */
function trailerOf(error: ServiceError): Buffer {
  for (let { details } = error; ; details = details.slice(0, -1)) {
    const bytes = Buffer.from(Status.encode(toStatus({ ...error, message: error.message, details })).finish());
    if (bytes.length <= MAX_TRAILER_BYTES || details.length === 0) return bytes;
  }
}

/** A ServiceError as a service sends it: the gRPC status, with google.rpc.Status in a trailer. */
export function toGrpcError(error: ServiceError): Partial<GrpcError> {
  const metadata = new Metadata();
  metadata.set(TRAILER, trailerOf(error));
  return { code: ERRORS[error.reason].grpc, details: error.message, metadata };
}

/** Undefined for an error that no process of ours has sent. */
function sentByService({ metadata }: GrpcError): ServiceError | undefined {
  const [trailer] = metadata.get(TRAILER);
  if (!(trailer instanceof Buffer)) return undefined;
  try {
    return fromStatus(Status.decode(trailer));
  } catch {
    return undefined;
  }
}

/** What the caller gets when a call that the service may have is not answered. */
export const unanswered = (mayRepeat: boolean, cause: unknown): ServiceError =>
  new ServiceError(mayRepeat ? 'UNAVAILABLE' : 'OUTCOME_UNKNOWN', undefined, { cause });

/**
 * The ServiceError for a failed call. An error without our trailer comes from the transport: UNAVAILABLE when the
 * request was not sent or the method is repeatable, OUTCOME_UNKNOWN when the service may have done what was requested.
 */
export function fromGrpcError(error: GrpcError, repeatable: boolean): ServiceError {
  const ours = sentByService(error);
  if (ours) return ours;
  switch (error.code) {
    case status.UNAVAILABLE:
      return unanswered(repeatable || neverSent(error), error);
    case status.DEADLINE_EXCEEDED:
      return unanswered(repeatable, error);
    // grpc-js answers so, before any code of ours
    case status.UNIMPLEMENTED:
      return unknownMethod(error.details);
    case status.CANCELLED:
      return new ServiceError('CLIENT_GONE', undefined, { cause: error });
    default:
      return new ServiceError('INTERNAL', undefined, { cause: error });
  }
}

/**
 * No handler has seen the call: it had no connection, or a service that stops has refused it. Recognized by the
 * messages of grpc-js.
 */
export const neverSent = (error: GrpcError): boolean =>
  error.code === status.UNAVAILABLE && NEVER_SENT.test(error.details) && !sentByService(error);
