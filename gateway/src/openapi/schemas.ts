import type { Field, Type } from 'protobufjs';
import { parseJson } from 'platform/core/parse-json.ts';
import { fieldOptions, hasPresence, textOf } from '../contract/rest-methods.ts';

/** JSON Schema 2020-12, as OpenAPI 3.1 has it. */
export type JsonSchema = { readonly [keyword: string]: unknown };

/** Schemas that the document names, by their name. */
export type Components = Map<string, JsonSchema>;

const SCALARS: Readonly<Record<string, JsonSchema>> = {
  string: { type: 'string' },
  bool: { type: 'boolean' },
  int32: { type: 'integer', minimum: -(2 ** 31), maximum: 2 ** 31 - 1 },
  int64: { type: 'integer', minimum: Number.MIN_SAFE_INTEGER, maximum: Number.MAX_SAFE_INTEGER },
  uint32: { type: 'integer', minimum: 0, maximum: 2 ** 32 - 1 },
  uint64: { type: 'integer', minimum: 0, maximum: Number.MAX_SAFE_INTEGER },
  double: { type: 'number' },
};

/** A value of the field as a request has it: neither coerced nor null. */
export function requestSchema(field: Field, components: Components): JsonSchema {
  const schema = valueSchema(field, (type) => requestObject(type, components));
  return described(field, fieldOptions(field).nullable ? orNull(schema) : schema);
}

/** A value of the field as a reply has it: an absent optional one is null. */
function replySchema(field: Field, components: Components): JsonSchema {
  const schema = described(
    field,
    valueSchema(field, (type) => replyReference(type, components)),
  );
  const { omitAbsent, json, stored } = fieldOptions(field);
  if (stored) return { anyOf: [schema, partReference(field.resolvedType as Type, components)] };
  const isNullable = hasPresence(field) && !omitAbsent && !field.repeated && !json;
  if (!isNullable) return schema;
  return isMessage(field) ? { anyOf: [schema, { type: 'null' }] } : orNull(schema);
}

/** The members of a request's body; `fields` are those that the body has. */
export function requestBody(
  fields: readonly Field[],
  ignoredMembers: readonly string[],
  components: Components,
): JsonSchema {
  const required = fields.filter((field) => fieldOptions(field).required).map(({ name }) => name);
  return {
    type: 'object',
    properties: Object.fromEntries([
      ...fields.map((field) => [field.name, requestSchema(field, components)]),
      ...ignoredMembers.map((name) => [name, { description: 'Accepted and ignored.' }]),
    ]),
    ...(required.length > 0 && { required }),
    additionalProperties: false,
  };
}

/** The body of a reply: `responseBody` names the field that is all of it; empty: every field that is no header. */
export function replyBody(type: Type, responseBody: string, components: Components): JsonSchema {
  const field = type.fields[responseBody];
  if (!field) return replyReference(type, components);
  const other = type.fieldsArray.find((one) => fieldOptions(one).replacesBody);
  const schema = replySchema(field, components);
  return other ? { oneOf: [schema, replySchema(other, components)] } : schema;
}

function requestObject(type: Type, components: Components): JsonSchema {
  return requestBody(type.fieldsArray, [], components);
}

/** Each message of a reply is a component of the document. */
function replyReference(type: Type, components: Components): JsonSchema {
  const name = type.name.replace(/Response$/, 'Reply');
  if (!components.has(name)) {
    components.set(name, {});
    components.set(name, replyObject(type, components));
  }
  return { $ref: `#/components/schemas/${name}` };
}

function replyObject(type: Type, components: Components): JsonSchema {
  const fields = type.fieldsArray.filter((field) => !isHeader(field) && !fieldOptions(field).outcome);
  const comment = textOf(type.comment);
  return {
    type: 'object',
    ...(comment !== '' && { description: comment }),
    properties: Object.fromEntries(fields.map((field) => [field.name, replySchema(field, components)])),
    required: fields.filter((field) => !fieldOptions(field).omitAbsent).map(({ name }) => name),
    additionalProperties: false,
  };
}

/** What the reply to a server token has that may write but not read. */
function partReference(type: Type, components: Components): JsonSchema {
  const name = `${type.name}AsSent`;
  const { properties } = replyObject(type, components);
  components.set(name, {
    type: 'object',
    description:
      'What a server token without the scope memory:read gets: what it has sent, and what the service makes.',
    properties,
    required: type.fieldsArray.filter((field) => fieldOptions(field).made).map((field) => field.name),
    additionalProperties: false,
  });
  return { $ref: `#/components/schemas/${name}` };
}

export const isHeader = (field: Field): boolean => {
  const { header, link } = fieldOptions(field);
  return header !== '' || link !== '';
};

const isMessage = ({ resolvedType }: Field): boolean => Boolean(resolvedType && 'fields' in resolvedType);

function valueSchema(field: Field, ofMessage: (type: Type) => JsonSchema): JsonSchema {
  const { json, schema } = fieldOptions(field);
  const declared = schema === '' ? {} : (parseJson(schema) as JsonSchema);
  const { resolvedType } = field;
  const element =
    resolvedType && 'fields' in resolvedType
      ? ofMessage(resolvedType)
      : json
        ? {}
        : resolvedType
          ? { type: 'string', enum: Object.keys(resolvedType.values) }
          : SCALARS[field.type];
  if (!element) throw new Error(`${field.fullName}: a field of type ${field.type} has no JSON Schema`);
  return field.repeated ? { type: 'array', items: element, ...declared } : { ...element, ...declared };
}

function described(field: Field, schema: JsonSchema): JsonSchema {
  const comment = textOf(field.comment);
  return comment === '' ? schema : { ...schema, description: comment };
}

function orNull({ type, enum: values, ...rest }: JsonSchema): JsonSchema {
  return { ...rest, type: [type, 'null'], ...(Array.isArray(values) && { enum: [...(values as unknown[]), null] }) };
}
