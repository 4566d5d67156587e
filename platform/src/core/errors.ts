import { status } from '@grpc/grpc-js';
import type { Reason } from 'proto/platform/v1/errors.ts';
import { sentenceAbout } from './sentence.ts';

export type KnownReason = Exclude<Reason, 'REASON_UNSPECIFIED' | 'UNRECOGNIZED'>;

interface Mapping {
  grpc: status;
  http: number;
  message: string;
  /** A request that a service refuses for this reason is in the audit trail as denied. */
  denial?: true;
}

/** What is wrong with one member of a request. The message may leave out its subject: "must be a number". */
export interface Violation {
  /** JSON pointer into the request body: "/content/price". */
  path: string;
  message: string;
}

/** The one table: reason -> gRPC code, HTTP status, default message. REST shows the reason in lower case as `code`. */
export const ERRORS: Record<KnownReason, Mapping> = {
  INVALID_REQUEST: { grpc: status.INVALID_ARGUMENT, http: 400, message: 'Invalid request' },
  MALFORMED_JSON: { grpc: status.INVALID_ARGUMENT, http: 400, message: 'The body is not valid JSON' },
  NOT_SUPPORTED: { grpc: status.INVALID_ARGUMENT, http: 400, message: 'Not supported' },
  INVALID_ARGS: {
    grpc: status.INVALID_ARGUMENT,
    http: 400,
    message: "The args do not match the agent's argument schema",
  },
  INVALID_SCHEMA: { grpc: status.INVALID_ARGUMENT, http: 400, message: 'The JSON Schema is not acceptable' },
  INVALID_CONTENT: {
    grpc: status.INVALID_ARGUMENT,
    http: 400,
    message: "The content does not match the type's JSON Schema",
  },
  KEY_CHANGED: {
    grpc: status.INVALID_ARGUMENT,
    http: 400,
    message: "The type's idSchema would derive another key from this content",
  },
  AGENT_NOT_RUNNABLE: {
    grpc: status.FAILED_PRECONDITION,
    http: 400,
    message: 'This agent cannot be run through the API',
  },
  UNAUTHENTICATED: { grpc: status.UNAUTHENTICATED, http: 401, message: 'Missing or invalid token' },
  INSUFFICIENT_CREDITS: {
    grpc: status.FAILED_PRECONDITION,
    http: 402,
    message: 'Not enough credits for this run',
    denial: true,
  },
  ADMIN_REQUIRED: { grpc: status.PERMISSION_DENIED, http: 403, message: 'Admin access required', denial: true },
  TIER_REQUIRED: {
    grpc: status.PERMISSION_DENIED,
    http: 403,
    message: "Not available in the organization's licence tier",
    denial: true,
  },
  TIER_LIMIT: {
    grpc: status.PERMISSION_DENIED,
    http: 403,
    message: 'The licence tier allows no more of these',
    denial: true,
  },
  FORBIDDEN: { grpc: status.PERMISSION_DENIED, http: 403, message: 'Not allowed', denial: true },
  NOT_FOUND: { grpc: status.NOT_FOUND, http: 404, message: 'Not found' },
  METHOD_NOT_ALLOWED: { grpc: status.UNIMPLEMENTED, http: 405, message: 'Method not allowed' },
  REQUEST_TIMEOUT: { grpc: status.CANCELLED, http: 408, message: 'The request took too long to arrive' },
  ALREADY_EXISTS: { grpc: status.ALREADY_EXISTS, http: 409, message: 'Already exists' },
  TYPE_IN_USE: { grpc: status.FAILED_PRECONDITION, http: 409, message: 'The memory type still has objects' },
  SCHEMA_INCOMPATIBLE: {
    grpc: status.FAILED_PRECONDITION,
    http: 409,
    message: 'Objects of the memory type would break the change',
  },
  TYPE_CHANGING: {
    grpc: status.FAILED_PRECONDITION,
    http: 409,
    message: 'The memory type is being changed or deleted',
  },
  OBJECT_IN_USE: { grpc: status.FAILED_PRECONDITION, http: 409, message: 'Other memory objects refer to the object' },
  CONFLICT: { grpc: status.ABORTED, http: 409, message: 'The resource was changed by another request' },
  RUN_IN_PROGRESS: { grpc: status.ABORTED, http: 409, message: 'A run with this idempotency key is in progress' },
  PRECONDITION_FAILED: {
    grpc: status.FAILED_PRECONDITION,
    http: 412,
    message: 'The resource is not in the version that If-Match names',
  },
  BODY_TOO_LARGE: { grpc: status.INVALID_ARGUMENT, http: 413, message: 'The body is too large' },
  UNSUPPORTED_MEDIA_TYPE: { grpc: status.INVALID_ARGUMENT, http: 415, message: 'The body must be application/json' },
  IDEMPOTENCY_KEY_REUSED: {
    grpc: status.FAILED_PRECONDITION,
    http: 422,
    message: 'This idempotency key was used with another body',
  },
  TOO_MANY_RUNS: {
    grpc: status.RESOURCE_EXHAUSTED,
    http: 429,
    message: 'Too many runs of this organization at once',
    denial: true,
  },
  RATE_LIMITED: { grpc: status.RESOURCE_EXHAUSTED, http: 429, message: 'Too many requests', denial: true },
  TOO_MANY_REQUESTS: {
    grpc: status.RESOURCE_EXHAUSTED,
    http: 429,
    message: 'Too many requests are under way at once',
    denial: true,
  },
  HEADERS_TOO_LARGE: { grpc: status.INVALID_ARGUMENT, http: 431, message: 'The request headers are too large' },
  INTERNAL: { grpc: status.INTERNAL, http: 500, message: 'Unexpected server error' },
  AGENT_FAILED: { grpc: status.INTERNAL, http: 500, message: 'The agent failed' },
  OUTPUT_INVALID: { grpc: status.INTERNAL, http: 500, message: "The agent's output does not match its output schema" },
  RUN_CANCELLED: { grpc: status.CANCELLED, http: 500, message: 'The run was cancelled' },
  UNAVAILABLE: { grpc: status.UNAVAILABLE, http: 503, message: 'A dependency of the service is not available' },
  QUEUE_FULL: { grpc: status.UNAVAILABLE, http: 503, message: 'Too many runs are waiting' },
  REPLY_TOO_LARGE: { grpc: status.OUT_OF_RANGE, http: 503, message: 'The reply is larger than its reader takes' },
  RUN_TIMEOUT: { grpc: status.DEADLINE_EXCEEDED, http: 504, message: 'The run took too long' },
  OUTCOME_UNKNOWN: { grpc: status.DEADLINE_EXCEEDED, http: 504, message: 'The outcome of the request is unknown' },
  CLIENT_GONE: { grpc: status.CANCELLED, http: 499, message: 'The client closed the request' },
};

/** Stable snake_case name of a reason, as it stands in `code` of an error body. */
export const codeOf = (reason: KnownReason): string => reason.toLowerCase();

/** What an agent has done, or its caller has asked for, and not the platform. */
const OF_AGENTS = (['AGENT_FAILED', 'OUTPUT_INVALID', 'RUN_TIMEOUT', 'RUN_CANCELLED'] satisfies KnownReason[]).map(
  codeOf,
);

/** Whether an error is a fault of the platform: for logs and traces. @param http its status */
export const isFault = (http: number, code: string): boolean => http >= 500 && !OF_AGENTS.includes(code);

export interface ErrorExtras {
  /** Violations, each a JSON pointer and a sentence; at most MAX_DETAILS reach the client. */
  details?: Violation[];
  /** Further members of the error body (`id`, `needed`, `count` ...). */
  facts?: Record<string, unknown>;
  /** Reply headers, for example Retry-After. */
  headers?: Record<string, string>;
  /** Logged, never sent. */
  cause?: unknown;
}

/** Violations of one request that reach its client. */
export const MAX_DETAILS = 20;
const MAX_TEXT = 1_000;

/**
 * Text of an error as it may leave a process: at most 1,000 characters, and well-formed UTF-16. A tenant's text may be
 * longer, or cut inside a surrogate pair; gRPC then breaks a whole connection, or throws.
 */
const shortened = (text: string): string =>
  (text.length <= MAX_TEXT ? text : `${text.slice(0, MAX_TEXT - 1)}…`).toWellFormed();

/** An outcome that the caller must learn of: the only error that leaves a service with a message. */
export class ServiceError extends Error {
  override readonly name = 'ServiceError';
  readonly reason: KnownReason;
  readonly details: Violation[];
  readonly facts: Record<string, unknown>;
  readonly headers: Record<string, string>;

  constructor(reason: KnownReason, message: string = ERRORS[reason].message, extras: ErrorExtras = {}) {
    super(shortened(message), { cause: extras.cause });
    this.reason = reason;
    this.details = (extras.details ?? []).slice(0, MAX_DETAILS).map((detail) => ({
      path: shortened(detail.path),
      message: shortened(sentenceAbout(detail.path, detail.message)),
    }));
    this.facts = extras.facts ?? {};
    this.headers = extras.headers ?? {};
  }
}

/** 503: a dependency does not answer, and nothing was done; the caller may ask again after a second. */
export const unavailable = (message: string, cause: unknown): ServiceError =>
  new ServiceError('UNAVAILABLE', message, { headers: { 'Retry-After': '1' }, cause });

/**
 * The text of a member that names something: a record that may exist, so an empty one is no 404.
 * @throws ServiceError INVALID_REQUEST when it is missing or empty
 */
export function requireText(member: string, text: string | undefined): string {
  if (!text) throw invalid(`/${member}`, `${member} ${text === undefined ? 'is required' : 'must not be empty'}`);
  return text;
}

/** 400 that names one member of the request. `path` is a JSON pointer ("/content/price"). */
export function invalid(path: string, message: string, reason: KnownReason = 'INVALID_REQUEST'): ServiceError {
  return new ServiceError(reason, sentenceAbout(path, message), { details: [{ path, message }] });
}
