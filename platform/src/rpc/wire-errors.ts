import { Metadata, status, type ServiceError as GrpcError } from '@grpc/grpc-js';
import { ErrorDetail } from 'proto/platform/v1/errors.ts';
import { ERRORS, ServiceError, type KnownReason } from '../core/errors.ts';

const TRAILER = 'error-detail-bin';

export const toErrorDetail = (error: ServiceError): ErrorDetail => ({
  reason: error.reason,
  message: error.message,
  details: error.details,
  facts: Object.keys(error.facts).length > 0 ? JSON.stringify(error.facts) : '',
  headers: error.headers,
});

export const fromErrorDetail = (detail: ErrorDetail): ServiceError =>
  new ServiceError(detail.reason as KnownReason, detail.message, {
    details: detail.details,
    facts: detail.facts === '' ? {} : (JSON.parse(detail.facts) as Record<string, unknown>),
    headers: detail.headers,
  });

/** What leaves a service: gRPC status and our detail in a trailer. */
export function toGrpcError(error: ServiceError): Partial<GrpcError> {
  const metadata = new Metadata();
  metadata.set(TRAILER, Buffer.from(ErrorDetail.encode(toErrorDetail(error)).finish()));
  return { code: ERRORS[error.reason].grpc, details: error.message, metadata };
}

/**
 * What a caller makes of a failed call. Without our detail it is the transport that speaks: UNAVAILABLE means that nothing
 * was done; where that cannot be told the reason is OUTCOME_UNKNOWN, unless the method changes nothing by a repeat.
 */
export function fromGrpcError(error: GrpcError, repeatable: boolean): ServiceError {
  const [detail] = error.metadata.get(TRAILER);
  if (detail instanceof Buffer) return fromErrorDetail(ErrorDetail.decode(detail));
  switch (error.code) {
    case status.UNAVAILABLE:
      return repeatable || neverSent(error)
        ? new ServiceError('UNAVAILABLE', undefined, { cause: error })
        : new ServiceError('OUTCOME_UNKNOWN', undefined, { cause: error });
    case status.DEADLINE_EXCEEDED:
      return new ServiceError(repeatable ? 'UNAVAILABLE' : 'OUTCOME_UNKNOWN', undefined, { cause: error });
    case status.CANCELLED:
      return new ServiceError('CLIENT_GONE', undefined, { cause: error });
    default:
      return new ServiceError('INTERNAL', undefined, { cause: error });
  }
}

// grpc-js words for a call that found no connection: its request never left this process
const neverSent = (error: GrpcError): boolean =>
  /No connection established|Name resolution failed|channel has been closed/i.test(error.details);
