import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import { restMethods } from '../../gateway/src/contract/rest-methods.ts';
import { openApiDocument } from '../../gateway/src/openapi/document.ts';
import type { Operation, ReplyObject } from '../../gateway/src/openapi/openapi.ts';
import { unreadableSentences } from './sentence-form.ts';
import type { Reply } from './request.ts';

/** Statuses that a request may get before its route or its method is known, so no operation lists them. */
const OF_NO_OPERATION = [431];
const ALWAYS_THERE = ['content-length', 'content-type', 'x-request-id'];

const document = openApiDocument(restMethods(), '');
const ajv = new Ajv2020({ strict: false, allErrors: true });
(formats as unknown as (ajv: Ajv2020) => void)(ajv);
ajv.addSchema({ $id: 'document', components: document.components });

interface KnownOperation {
  name: string;
  pattern: RegExp;
  verb: string;
  operation: Operation;
}
const operations: readonly KnownOperation[] = Object.entries(document.paths).flatMap(([path, verbs]) =>
  Object.entries(verbs).map(([verb, operation]) => ({
    name: `${verb.toUpperCase()} ${path}`,
    pattern: new RegExp(`^${path.replaceAll('.', '\\.').replaceAll(/\{\w+\}/g, '[^/]+')}$`),
    verb: verb.toUpperCase(),
    operation,
  })),
);

const validators = new Map<ReplyObject, ValidateFunction>();
function validatorOf(reply: ReplyObject): ValidateFunction | undefined {
  const schema = reply.content?.['application/json']?.schema;
  if (!schema) return undefined;
  const known = validators.get(reply);
  if (known) return known;
  const made = ajv.compile(JSON.parse(JSON.stringify(schema).replaceAll('"#/components', '"document#/components')));
  validators.set(reply, made);
  return made;
}
const anyError = ajv.compile({ $ref: 'document#/components/schemas/Error' });

/**
 * Every answer that a test gets is one that the OpenAPI document has: status, headers, body. The sentences of a refusal
 * are such that a user can read them.
 * @throws Error saying what the document lacks
 */
export function expectDocumented(
  verb: string,
  url: string,
  { status, headers, body }: Omit<Reply, 'origin' | 'text'>,
): void {
  const { pathname } = new URL(url, 'http://any');
  const found = operations.find(
    (known) => known.verb === (verb === 'HEAD' ? 'GET' : verb) && known.pattern.test(pathname),
  );
  const fail = (what: string): never => {
    throw new Error(
      `${verb} ${pathname}: ${what}, which /openapi.json does not have: ${status} ${JSON.stringify(body)}`,
    );
  };
  if (status >= 400 && body !== undefined && !anyError(body)) fail(`the body ${ajv.errorsText(anyError.errors)}`);
  const unreadable = status >= 400 && body !== undefined ? unreadableSentences(body) : [];
  if (unreadable.length > 0) throw new Error(`${verb} ${pathname}: nobody can read ${JSON.stringify(unreadable)}`);
  if (!found) return;
  const documented = found.operation.responses[String(status)];
  if (!documented) return OF_NO_OPERATION.includes(status) ? undefined : fail(`the status ${status}`);
  for (const name of ALWAYS_THERE)
    if (status !== 304 && !headers.has(name) && !headers.has('content-encoding')) fail(`no header ${name}`);
  if (verb === 'HEAD' || body === undefined) return;
  const validate = validatorOf(documented);
  if (validate && !validate(body)) fail(`${found.name}: ${ajv.errorsText(validate.errors)}`);
}
