import type { Enum, Field } from 'protobufjs';
import { parseJson } from 'platform/core/parse-json.ts';
import { fieldOptions, httpStatuses, textOf, type HttpBinding, type RestMethod } from '../contract/rest-methods.ts';
import { RELEASE } from 'platform/core/release.ts';
import { camelCase } from 'platform/rpc/method-options.ts';
import { ERROR_SCHEMA, failureReplies, reasonsOf } from './failures.ts';
import { EXAMPLES, type Example } from './examples.ts';
import type { OpenApiDocument, Operation, Parameter, ReplyObject } from './openapi.ts';
import { isHeader, replyBody, requestBody, requestSchema, type Components, type JsonSchema } from './schemas.ts';

const TAGS: Readonly<Record<string, string>> = {
  auth: 'Who the caller is.',
  agents: 'Functional agents, and their executions.',
  memory: 'Typed memory: memory types and memory objects.',
};

const HEADERS: JsonSchema = {
  'X-Request-Id': {
    description: 'The id of the request: the one that the client sent, or a new one.',
    schema: { type: 'string', pattern: '^[\\w.-]{1,64}$' },
  },
  'Retry-After': { description: 'Seconds to wait.', schema: { type: 'string', pattern: '^[0-9]+$' } },
  'WWW-Authenticate': { description: 'Bearer.', schema: { type: 'string' } },
  RateLimit: {
    description: 'What is left of each limit in this minute (draft-ietf-httpapi-ratelimit-headers-10).',
    schema: { type: 'string' },
  },
  'RateLimit-Policy': { description: 'The limits that concern the request.', schema: { type: 'string' } },
};

/** The contract of all REST methods, made from their protos and options. */
export function openApiDocument(methods: readonly RestMethod[], publicUrl: string): OpenApiDocument {
  const components: Components = new Map([['Error', ERROR_SCHEMA]]);
  const paths: OpenApiDocument['paths'] = {};
  for (const method of methods)
    for (const binding of method.bindings) {
      const path = binding.template.replaceAll(/\{(\w+)\}/g, (_, name: string) => `{${parameterName(name)}}`);
      (paths[path] ??= {})[binding.verb.toLowerCase()] = operationOf(
        method,
        binding,
        components,
        EXAMPLES[`${binding.verb} ${path}`],
      );
    }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Agent and memory service',
      version: RELEASE,
      description:
        'Runs functional agents and keeps typed memory, for one organization: that of the token. ' +
        'GET answers HEAD, too, and every path answers OPTIONS. Numbers, texts and ids are never coerced.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: publicUrl === '' ? '/' : publicUrl }],
    tags: Object.entries(TAGS).map(([name, description]) => ({ name, description })),
    security: [{ bearer: [] }],
    paths,
    components: {
      schemas: Object.fromEntries([...components].sort(([a], [b]) => a.localeCompare(b))),
      headers: HEADERS,
      securitySchemes: {
        bearer: { type: 'http', scheme: 'bearer', description: 'A server token (aks_…) or a JWT of a user.' },
      },
    },
  };
}

/** "path_id" and "id" are the same parameter of the same path. */
const parameterName = (name: string): string => camelCase(name.replace(/^path_/, ''));

function operationOf(
  method: RestMethod,
  binding: HttpBinding,
  components: Components,
  example: Example | undefined,
): Operation {
  const { path, audience, options, description, requestType } = method;
  const operationId = path.slice(path.lastIndexOf('/') + 1);
  const takesBody = binding.body !== '';
  const inPath = [...binding.template.matchAll(/\{(\w+)\}/g)].map(([, name]) => name as string);
  const rest = requestType.fieldsArray.filter(
    (field) => !inPath.map(camelCase).includes(field.name) && !fieldOptions(field).internal && !isHeader(field),
  );
  const inQuery = (field: Field): boolean => !takesBody || fieldOptions(field).query;
  const inHeaders = requestType.fieldsArray.filter((field) => fieldOptions(field).header !== '');
  const { body } = example ?? {};
  return {
    operationId,
    tags: [audience],
    summary: description,
    ...(options.public && { security: [] }),
    parameters: [
      ...inPath.map((name): Parameter => ({
        name: parameterName(name),
        in: 'path',
        required: true,
        schema: { type: 'string' },
      })),
      ...rest.filter(inQuery).map((field) => parameterOf(field, 'query', field.name, components)),
      ...inHeaders.map((field) => parameterOf(field, 'header', fieldOptions(field).header, components)),
    ],
    ...(takesBody && {
      requestBody: {
        required: true,
        content: {
          'application/json': {
            schema: requestBody(
              rest.filter((field) => !inQuery(field)),
              options.ignoredMembers,
              components,
            ),
            ...(body !== undefined && { example: body }),
          },
        },
      },
    }),
    responses: {
      ...successes(method, binding, components, example),
      ...failureReplies(reasonsOf(method, binding)),
    },
  };
}

function parameterOf(field: Field, place: 'query' | 'header', name: string, components: Components): Parameter {
  const { description, ...schema } = requestSchema(field, components);
  return {
    name,
    in: place,
    required: fieldOptions(field).required,
    ...(typeof description === 'string' && { description }),
    schema,
  };
}

function successes(
  { responseType, options, streams }: RestMethod,
  { verb, responseBody }: HttpBinding,
  components: Components,
  example: Example | undefined,
): Record<string, ReplyObject> {
  const outcome = responseType.fieldsArray.find((field) => fieldOptions(field).outcome);
  const statuses = outcome
    ? [...httpStatuses(outcome.resolvedType as Enum)].filter(([value]) => value !== 0).map(([, status]) => status)
    : [200];
  // what a reply says in a header is the id of its event
  const inHeaders = streams ? [] : responseType.fieldsArray.filter(isHeader);
  const headers = {
    'X-Request-Id': { $ref: '#/components/headers/X-Request-Id' },
    ...(!options.public && {
      RateLimit: { $ref: '#/components/headers/RateLimit' },
      'RateLimit-Policy': { $ref: '#/components/headers/RateLimit-Policy' },
    }),
    ...Object.fromEntries(inHeaders.map(headerOf)),
  };
  const schema = replyBody(responseType, responseBody, components);
  const { status, reply } = example ?? {};
  const replies = statuses.map((each): [string, ReplyObject] => [
    String(each),
    {
      description: each === 201 ? 'Created.' : streams ? 'Server-Sent Events; this is the data of each.' : 'Done.',
      headers,
      content: {
        [streams ? 'text/event-stream' : 'application/json']: { schema, ...(status === each && { example: reply }) },
      },
    },
  ]);
  const hasETag = inHeaders.some((field) => fieldOptions(field).header === 'ETag');
  return Object.fromEntries(
    hasETag && verb === 'GET'
      ? [...replies, ['304', { description: 'The client has this version.', headers }]]
      : replies,
  );
}

/** OpenAPI describes `Link` and cursors as one header. */
function headerOf(field: Field): [string, JsonSchema] {
  const { header, link, schema } = fieldOptions(field);
  const description = textOf(field.comment);
  if (link !== '')
    return ['Link', { description: `The URL of the ${link} page, if there is one.`, schema: { type: 'string' } }];
  const declared = schema === '' ? {} : (parseJson(schema) as JsonSchema);
  return [
    header,
    {
      ...(description !== '' && { description }),
      schema: { type: 'string', ...declared },
    },
  ];
}
