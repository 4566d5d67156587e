import type { KnownReason } from 'platform/core/errors.ts';

/** For the reference page: why a request gets the code, and what to do. */
export const ERROR_GUIDE: Readonly<Record<KnownReason, { cause: string; remedy: string }>> = {
  INVALID_REQUEST: {
    cause:
      'A member, parameter or header is unknown, missing, repeated or has a wrong value, such as a number that would ' +
      'lose digits.',
    remedy: 'Correct what `details` names. Nothing was changed.',
  },
  MALFORMED_JSON: {
    cause: 'The body is not JSON in UTF-8.',
    remedy: 'Send the output of a JSON library.',
  },
  NOT_SUPPORTED: {
    cause: 'The service does not support this with the settings that it runs with.',
    remedy: 'Ask the operator.',
  },
  INVALID_ARGS: {
    cause: "The args do not match the agent's argumentsSchema.",
    remedy: 'Correct what `details` names; `GET /api/agent/run?include=argumentsSchema` shows the schema.',
  },
  INVALID_SCHEMA: {
    cause: 'The JSON Schema is not valid, too large, or cannot be checked within its limits.',
    remedy: 'Correct what `details` names.',
  },
  INVALID_CONTENT: {
    cause: 'The content does not match the jsonSchema of its memory type.',
    remedy: 'Correct what `details` names. Nothing was changed.',
  },
  KEY_CHANGED: {
    cause:
      'The idSchema of the type derives the key from the content, and this content has other values there, which would ' +
      'give another key, or the same by chance.',
    remedy: 'Keep the values that `details` names, or delete the object and create another.',
  },
  AGENT_NOT_RUNNABLE: {
    cause: 'The agent exists, but it is not a functional agent or needs interactive tools.',
    remedy: 'Run an agent of `GET /api/agent/run`.',
  },
  UNAUTHENTICATED: {
    cause: 'The token is missing, wrong, expired or revoked. It is not said which.',
    remedy: 'Send `Authorization: Bearer <token>` with a valid token.',
  },
  INSUFFICIENT_CREDITS: {
    cause: 'The account holds less than the run may cost; see `needed` and `available`.',
    remedy: 'Ask the operator for credits. The idempotency key is still free.',
  },
  ADMIN_REQUIRED: {
    cause: 'The user has no admin role.',
    remedy: 'Ask a security admin for it, or use a server token.',
  },
  TIER_REQUIRED: {
    cause: 'The licence tier of the organization does not include this.',
    remedy: '`GET /api/auth/whoami` shows the tier and what it includes.',
  },
  TIER_LIMIT: {
    cause: 'The organization has as many as its licence tier allows; the answer names the limit.',
    remedy: 'Delete what is not needed, or ask for a higher tier.',
  },
  FORBIDDEN: {
    cause:
      'This token may not call this endpoint, or not in this way (a dry run and a change of a type with memory objects ' +
      'read them): it lacks the scope, or may not be used from this address.',
    remedy: 'Use a token with the scope that the answer names, from an address that the token allows.',
  },
  NOT_FOUND: {
    cause: 'There is no such path, or nothing with this id or name that the caller may see.',
    remedy: 'Check the path and the id.',
  },
  METHOD_NOT_ALLOWED: { cause: 'The path does not take this verb.', remedy: 'Use one that `Allow` lists.' },
  REQUEST_TIMEOUT: { cause: 'The body or the headers arrived too slowly.', remedy: 'Send the request again.' },
  ALREADY_EXISTS: {
    cause:
      'The name or key is taken; `id` tells by which. An upsert is refused if the idSchema of the type makes the same ' +
      'key of other values.',
    remedy: 'Update that one, or choose another; of an idSchema, a separator that no value contains.',
  },
  TYPE_IN_USE: { cause: 'The memory type has objects; see `count`.', remedy: 'Delete its objects first.' },
  SCHEMA_INCOMPATIBLE: {
    cause: 'Objects of the type would break the change: `count` of them, of which `examples` has up to ten.',
    remedy: 'Correct these objects, or change the type so that they fit. An admin may send `?force=true`.',
  },
  TYPE_CHANGING: {
    cause: 'A change or the deletion of the type is under way; `change` of the type shows how far it is.',
    remedy: 'Try again when its `state` is active, or cancel it: `DELETE /api/memory/types/{id}/change`.',
  },
  OBJECT_IN_USE: {
    cause:
      'Objects refer to the object: their relation has `onDelete: restrict`, or too many would be deleted or changed ' +
      'with it. `count` tells of how many of them the caller may know, and `examples` has up to ten.',
    remedy: 'Change or delete these objects first.',
  },
  CONFLICT: { cause: 'Another request changed the same thing at the same time.', remedy: 'Read it and try again.' },
  RUN_IN_PROGRESS: {
    cause: 'A run with the same idempotency key has not ended.',
    remedy: 'Send the same request again after `Retry-After`.',
  },
  PRECONDITION_FAILED: {
    cause: 'The resource was changed since the client read it: its ETag is none of those in If-Match.',
    remedy: 'Read it, and decide again. Nothing was changed.',
  },
  BODY_TOO_LARGE: { cause: 'The body is larger than the endpoint takes.', remedy: 'Send less.' },
  UNSUPPORTED_MEDIA_TYPE: {
    cause: 'The body is not declared as application/json in UTF-8, or it is compressed.',
    remedy: 'Send `Content-Type: application/json`.',
  },
  IDEMPOTENCY_KEY_REUSED: {
    cause: 'The key was used within 24 hours with another agent or other args.',
    remedy: 'Make a new key for each new request.',
  },
  TOO_MANY_RUNS: {
    cause: 'Too many runs of the organization are under way.',
    remedy: 'Send it again after `Retry-After`. Nothing was done.',
  },
  RATE_LIMITED: {
    cause: 'Too many requests in this minute, of the token, the organization or the address: see `limit`.',
    remedy: 'Send it again after `Retry-After`. `RateLimit` shows what is left. Nothing was done.',
  },
  TOO_MANY_REQUESTS: {
    cause: 'Too many requests of the token or the organization are under way.',
    remedy: 'Wait for replies, and send it again after `Retry-After`. Nothing was done.',
  },
  HEADERS_TOO_LARGE: { cause: 'The headers or the path are too long.', remedy: 'Send less.' },
  INTERNAL: {
    cause: 'A fault of the platform. A run that it interrupted costs nothing.',
    remedy: 'Tell the operator the `requestId`; the log has the cause.',
  },
  AGENT_FAILED: {
    cause: 'The agent itself failed; the answer says how.',
    remedy: 'Correct the args, or tell the author of the agent.',
  },
  OUTPUT_INVALID: {
    cause: "The agent's output does not match its own outputSchema, or would not come back as it is.",
    remedy: 'Tell the author of the agent.',
  },
  RUN_CANCELLED: {
    cause: 'The client left while the run was under way, or somebody cancelled it.',
    remedy: 'Run it again.',
  },
  UNAVAILABLE: {
    cause: 'A part of the platform does not answer at the moment.',
    remedy: 'Send it again after `Retry-After`. Nothing was done.',
  },
  QUEUE_FULL: {
    cause: 'Too many runs of all organizations are waiting.',
    remedy: 'Send it again after `Retry-After`. Nothing was done.',
  },
  REPLY_TOO_LARGE: {
    cause: 'There is no room for so large a reply at the moment.',
    remedy: 'Send it again after `Retry-After`, or ask for a smaller page.',
  },
  RUN_TIMEOUT: {
    cause: "The run took longer than the agent's limit.",
    remedy: 'Ask for less in one run, or for a higher limit of the agent.',
  },
  OUTCOME_UNKNOWN: {
    cause: 'A part of the platform stopped in the middle of the request: it may have been done.',
    remedy: 'Read what is there. A run with an Idempotency-Key can be sent again: the repeat tells.',
  },
  CLIENT_GONE: { cause: 'The client closed the connection.', remedy: 'None: nobody gets this answer.' },
};
