import { Metadata, status, type ServiceError as GrpcError } from '@grpc/grpc-js';
import { BadRequest, ErrorInfo } from 'proto/google/rpc/error_details.ts';
import { Status } from 'proto/google/rpc/status.ts';
import { ERRORS, ServiceError, type KnownReason } from 'platform/core/errors.ts';
import { fromGrpcError, fromStatus, toGrpcError, toStatus } from 'platform/rpc/wire-errors.ts';

const received = (given: Partial<GrpcError>): GrpcError =>
  Object.assign(new Error(given.details), { code: status.UNKNOWN, details: '', metadata: new Metadata() }, given);

describe('an error sent over gRPC', () => {
  it.each(Object.keys(ERRORS) as KnownReason[])('%s arrives unchanged', (reason) => {
    const error = new ServiceError(reason, 'One sentence', {
      details: [{ path: '/a~1b', message: 'must be text' }],
      facts: { id: 'x', count: 3, allow: ['GET'], nothing: null },
      headers: { 'Retry-After': '1' },
    });
    const arrived = fromGrpcError(received(toGrpcError(error)), false);
    expect({ ...arrived, message: arrived.message }).toEqual({ ...error, message: 'One sentence' });
  });

  it('carries google.rpc.Status with ErrorInfo and BadRequest, which gRPC tools can read', () => {
    const error = new ServiceError('INVALID_REQUEST', 'Bad', { details: [{ path: '/key', message: 'is required' }] });
    const { code, details, metadata } = toGrpcError(error);
    const sent = Status.decode(metadata!.get('grpc-status-details-bin')[0] as Buffer);
    expect(sent).toMatchObject({ code, message: details });
    expect(sent.details.map(({ typeUrl }) => typeUrl)).toEqual([
      'type.googleapis.com/google.rpc.ErrorInfo',
      'type.googleapis.com/google.rpc.BadRequest',
    ]);
    expect(ErrorInfo.decode(sent.details[0]!.value)).toMatchObject({ reason: 'INVALID_REQUEST' });
    expect(BadRequest.decode(sent.details[1]!.value).fieldViolations).toMatchObject([
      { field: '/key', description: 'key is required' },
    ]);
  });

  it('becomes INTERNAL when other software sent it', () => {
    const metadata = new Metadata();
    const info = ErrorInfo.encode({ reason: 'NOT_FOUND', domain: 'proxy.example', metadata: {} }).finish();
    const details = [{ typeUrl: 'type.googleapis.com/google.rpc.ErrorInfo', value: Buffer.from(info) }];
    metadata.set('grpc-status-details-bin', Buffer.from(Status.encode({ code: 5, message: '', details }).finish()));
    expect(fromGrpcError(received({ code: status.UNKNOWN, metadata }), false).reason).toBe('INTERNAL');
  });

  it.each([
    ['INVALID_ARGUMENT', 'INVALID_REQUEST'],
    ['UNAUTHENTICATED', 'UNAUTHENTICATED'],
    ['PERMISSION_DENIED', 'FORBIDDEN'],
    ['NOT_FOUND', 'NOT_FOUND'],
    ['ALREADY_EXISTS', 'ALREADY_EXISTS'],
    ['FAILED_PRECONDITION', 'CONFLICT'],
    ['ABORTED', 'CONFLICT'],
    ['RESOURCE_EXHAUSTED', 'RATE_LIMITED'],
    ['UNAVAILABLE', 'UNAVAILABLE'],
    ['OUT_OF_RANGE', 'INTERNAL'],
    ['DEADLINE_EXCEEDED', 'OUTCOME_UNKNOWN'],
    ['DATA_LOSS', 'INTERNAL'],
  ] as const)('with a reason of a later release and the code %s is %s, with all that it says', (code, reason) => {
    const sent = toStatus(
      new ServiceError('NOT_FOUND', 'Moved', { facts: { id: 'x' }, headers: { 'retry-after': '9' } }),
    );
    const [info] = sent.details;
    const later = { ...ErrorInfo.decode(info!.value), reason: 'constructor' };
    const arrived = fromStatus({
      ...sent,
      code: status[code],
      details: [{ ...info!, value: Buffer.from(ErrorInfo.encode(later).finish()) }],
    })!;
    expect({ ...arrived, message: arrived.message }).toMatchObject({
      ...{ reason, message: 'Moved', facts: { id: 'x' }, headers: { 'retry-after': '9' } },
    });
    // a service passes it on
    expect(fromStatus(toStatus(arrived))).toMatchObject({ reason });
  });

  it.each([
    ['UNAVAILABLE', true, 'UNAVAILABLE'],
    ['UNAVAILABLE', false, 'OUTCOME_UNKNOWN'],
    ['DEADLINE_EXCEEDED', true, 'UNAVAILABLE'],
    ['DEADLINE_EXCEEDED', false, 'OUTCOME_UNKNOWN'],
    ['CANCELLED', true, 'CLIENT_GONE'],
    ['UNIMPLEMENTED', false, 'UNAVAILABLE'],
    ['INTERNAL', true, 'INTERNAL'],
  ] as const)('of the transport alone, %s (repeatable: %s), is %s', (code, repeatable, reason) => {
    expect(fromGrpcError(received({ code: status[code] }), repeatable).reason).toBe(reason);
  });
});
