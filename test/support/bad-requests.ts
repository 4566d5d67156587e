import fc from 'fast-check';
import { EXAMPLES } from '../../gateway/src/openapi/examples.ts';
import type { OpenApiDocument, Operation } from '../../gateway/src/openapi/openapi.ts';
import type { JsonSchema } from '../../gateway/src/openapi/schemas.ts';

/** A request that the contract does not allow, and why. */
export interface BadRequest {
  why: string;
  verb: string;
  path: string;
  /** Text is sent as it is. */
  body?: unknown;
  headers?: Record<string, string>;
}

const HOSTILE_TEXTS = [
  '',
  ' ',
  '\u0000',
  '__proto__',
  '../..',
  '%00',
  'a'.repeat(3_000),
  '💥'.repeat(600),
  '{"$gt":""}',
  "' OR 1=1",
];
const hostileText = fc.oneof(fc.constantFrom(...HOSTILE_TEXTS), fc.string({ unit: 'binary', maxLength: 40 }));
const anyJson = fc.oneof(
  fc.constantFrom<unknown>(null, true, false, 0, -1, 1.5, 1e300, [], {}, [[]], { a: 1 }),
  hostileText,
  fc.jsonValue({ maxDepth: 3 }),
);

const typeOf = (value: unknown): string =>
  value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value === 'number' ? 'number' : typeof value;

/** True if the schema certainly does not allow the value. It knows the keywords that the document uses for members. */
function violates(schema: JsonSchema, value: unknown): boolean {
  const types = schema.type === undefined ? undefined : [schema.type].flat();
  const type = typeOf(value);
  const fits = types?.some((allowed) => allowed === type || (allowed === 'integer' && Number.isInteger(value))) ?? true;
  if (!fits) return true;
  if (Array.isArray(schema.enum) && !schema.enum.includes(value)) return true;
  if (typeof value === 'string')
    return (
      (typeof schema.minLength === 'number' && Array.from(value).length < schema.minLength) ||
      (typeof schema.maxLength === 'number' && Array.from(value).length > schema.maxLength) ||
      (typeof schema.pattern === 'string' && !new RegExp(schema.pattern, 'u').test(value)) ||
      (schema.format === 'uuid' && !/^[0-9a-f-]{36}$/i.test(value))
    );
  if (typeof value === 'number')
    return (
      value < ((schema.minimum as number | undefined) ?? -Infinity) ||
      value > ((schema.maximum as number | undefined) ?? Infinity)
    );
  if (Array.isArray(value)) return value.length > ((schema.maxItems as number | undefined) ?? Infinity);
  return false;
}
const violationOf = (schema: JsonSchema): fc.Arbitrary<unknown> => anyJson.filter((value) => violates(schema, value));
const canBeViolated = ({ type, enum: values, pattern }: JsonSchema): boolean =>
  (type ?? values ?? pattern) !== undefined;

interface Route {
  verb: string;
  template: string;
  operation: Operation;
}
type Body = Record<string, unknown>;

/** Every path parameter gets an id that nothing has, so even a request without a fault would change nothing. */
const pathOf = ({ template }: Route): fc.Arbitrary<string> =>
  fc.uuid({ version: 7 }).map((id) => template.replaceAll(/\{\w+\}/g, id));

/** Draws requests of all operations that need a token. Each has exactly one fault. */
export function badRequests({ paths }: OpenApiDocument): fc.Arbitrary<BadRequest> {
  const routes = Object.entries(paths).flatMap(([template, verbs]) =>
    Object.entries(verbs)
      .filter(([, { security }]) => security === undefined)
      .map(([verb, operation]): Route => ({ verb: verb.toUpperCase(), template, operation })),
  );
  return fc.oneof(...routes.flatMap((route) => faultsOf(route)));
}

function faultsOf(route: Route): fc.Arbitrary<BadRequest>[] {
  const { verb, template, operation } = route;
  const { body } = EXAMPLES[`${verb} ${template}`] ?? {};
  const bad = (why: string, fault: fc.Arbitrary<Partial<BadRequest>>): fc.Arbitrary<BadRequest> =>
    fc.tuple(pathOf(route), fault).map(([path, given]) => ({ why, verb, path, body, ...given }));
  const headers = bad(
    'a header that must not be there, or not so',
    fc
      .constantFrom<Record<string, string>>(
        { 'Idempotency-Key': 'k'.repeat(256) },
        { 'Idempotency-Key': '' },
        { 'If-Match': 'x'.repeat(300) },
      )
      .map((given) => ({ headers: given })),
  );
  return [headers, ...(body === undefined ? queryFaults(route, bad) : bodyFaults(operation, body as Body, bad))];
}
type Bad = (why: string, fault: fc.Arbitrary<Partial<BadRequest>>) => fc.Arbitrary<BadRequest>;

function queryFaults(route: Route, bad: Bad): fc.Arbitrary<BadRequest>[] {
  const path = (query: fc.Arbitrary<string>) =>
    fc.tuple(pathOf(route), query).map(([target, text]) => ({ path: `${target}?${text}` }));
  const parameters = route.operation.parameters.filter(
    ({ in: place, schema }) => place === 'query' && canBeViolated(schema),
  );
  return [
    bad(
      'an unknown query parameter',
      path(hostileText.map((text) => `nope=${encodeURIComponent(text.toWellFormed())}`)),
    ),
    ...parameters.map(({ name, schema }) => {
      const asText = violationOf({ ...schema, type: schema.type === 'integer' ? 'integer' : 'string' });
      const wrong =
        schema.type === 'string' && schema.enum === undefined && schema.format === undefined
          ? fc.constant('%ZZ')
          : asText.map((value) =>
              encodeURIComponent(
                String(typeof value === 'string' ? value.toWellFormed() || '-' : JSON.stringify(value)),
              ),
            );
      return bad(
        `a wrong ${name}`,
        path(wrong.filter((text) => !/^[1-9]\d?$/.test(text)).map((text) => `${name}=${text}`)),
      );
    }),
    ...parameters.map(({ name }) => bad(`${name} twice`, path(fc.constant(`${name}=1&${name}=1`)))),
  ];
}

function bodyFaults({ requestBody }: Operation, body: Body, bad: Bad): fc.Arbitrary<BadRequest>[] {
  const { schema } = (requestBody?.content as Record<string, { schema: JsonSchema }>)['application/json'] as {
    schema: JsonSchema;
  };
  const members = Object.entries(schema.properties as Record<string, JsonSchema>).filter(([, member]) =>
    canBeViolated(member),
  );
  const text = JSON.stringify(body);
  return [
    bad(
      'an unknown member',
      anyJson.map((value) => ({ body: { ...body, nope: value } })),
    ),
    bad(
      'a body that is no object',
      fc.constantFrom('[]', 'null', '1', '"x"', '', '   ').map((given) => ({ body: given })),
    ),
    bad(
      'a broken body',
      fc.nat(text.length - 1).map((length) => ({ body: text.slice(0, length) })),
    ),
    bad('a member twice', fc.constant({ body: `${text.slice(0, -1)},${text.slice(1)}` })),
    bad(
      'another media type',
      fc
        .constantFrom('text/plain', 'application/xml', 'application/json; charset=utf-16')
        .map((type) => ({ headers: { 'Content-Type': type } })),
    ),
    ...members.map(([name, member]) =>
      bad(
        `a wrong ${name}`,
        violationOf(member).map((value) => ({ body: { ...body, [name]: value } })),
      ),
    ),
    ...((schema.required ?? []) as string[]).map((name) =>
      bad(
        `no ${name}`,
        fc.constant({ body: Object.fromEntries(Object.entries(body).filter(([key]) => key !== name)) }),
      ),
    ),
  ];
}
