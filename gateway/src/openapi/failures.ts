import { codeOf, ERRORS, type KnownReason } from 'platform/core/errors.ts';
import type { HttpBinding, RestMethod } from '../contract/rest-methods.ts';
import { fieldOptions } from '../contract/rest-methods.ts';
import type { ReplyObject } from './openapi.ts';
import type { JsonSchema } from './schemas.ts';

/** The body of every reply of 400 or above. Beside these members it may have facts, such as the `id` of a conflict. */
export const ERROR_SCHEMA: JsonSchema = {
  type: 'object',
  description: 'Why a request was refused or failed. Some codes come with further members.',
  properties: {
    error: { type: 'string', description: 'A sentence for people. It may change; programs read `code`.' },
    code: {
      type: 'string',
      description: 'The reason.',
      enum: Object.keys(ERRORS).map((reason) => codeOf(reason as KnownReason)),
    },
    requestId: { type: 'string', description: 'The X-Request-Id of the reply; the logs have it, too.' },
    details: {
      type: 'array',
      description: 'What is wrong with members of the request, at most 20 of them.',
      maxItems: 20,
      items: {
        type: 'object',
        properties: {
          path: { type: 'string', description: 'JSON pointer to the member.' },
          message: { type: 'string' },
        },
        required: ['path', 'message'],
        additionalProperties: false,
      },
    },
  },
  required: ['error', 'code', 'requestId'],
};

/** With which reasons a route may refuse or fail. */
export function reasonsOf({ options, requestType }: RestMethod, { verb, template, body }: HttpBinding): KnownReason[] {
  const takesIfMatch = requestType.fieldsArray.some((field) => fieldOptions(field).header === 'If-Match');
  const reasons: KnownReason[] = [
    'INVALID_REQUEST',
    ...whenever(!options.public, ['UNAUTHENTICATED', 'FORBIDDEN', 'RATE_LIMITED', 'TOO_MANY_REQUESTS']),
    ...whenever(options.capability !== '', ['TIER_REQUIRED']),
    ...whenever(options.role !== '', ['ADMIN_REQUIRED']),
    ...whenever(body !== '', ['MALFORMED_JSON', 'UNSUPPORTED_MEDIA_TYPE', 'BODY_TOO_LARGE', 'REQUEST_TIMEOUT']),
    ...whenever(template.includes('{'), ['NOT_FOUND']),
    ...whenever(takesIfMatch, ['PRECONDITION_FAILED']),
    'INTERNAL',
    'UNAVAILABLE',
    ...whenever(verb !== 'GET', ['OUTCOME_UNKNOWN']),
    ...options.errors,
  ];
  return [...new Set(reasons)];
}

const whenever = (condition: boolean, reasons: readonly KnownReason[]): readonly KnownReason[] =>
  condition ? reasons : [];

/** The replies of these reasons, by status. */
export function failureReplies(reasons: readonly KnownReason[]): Record<string, ReplyObject> {
  const byStatus = Map.groupBy(reasons, (reason) => String(ERRORS[reason].http));
  return Object.fromEntries([...byStatus].sort().map(([status, group]) => [status, failureReply(status, group)]));
}

function failureReply(status: string, reasons: readonly KnownReason[]): ReplyObject {
  const codes = reasons.map(codeOf);
  return {
    description: reasons.map((reason) => `\`${codeOf(reason)}\`: ${ERRORS[reason].message}.`).join(' '),
    headers: {
      'X-Request-Id': { $ref: '#/components/headers/X-Request-Id' },
      ...(['429', '503'].includes(status) && { 'Retry-After': { $ref: '#/components/headers/Retry-After' } }),
      ...(status === '401' && { 'WWW-Authenticate': { $ref: '#/components/headers/WWW-Authenticate' } }),
    },
    content: {
      'application/json': {
        schema: {
          allOf: [{ $ref: '#/components/schemas/Error' }, { properties: { code: { enum: codes } } }],
        },
      },
    },
  };
}
