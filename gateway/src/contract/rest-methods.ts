import type { Enum, Field, Type } from 'protobufjs';
import { FieldOptions } from 'proto/platform/v1/options.ts';
import { camelCase, methodOptionsOf, type MethodOptions } from 'platform/rpc/method-options.ts';
import { declaredMethods } from 'platform/rpc/protos.ts';

/** A method with a google.api.http rule. */
export interface RestMethod {
  /** "/memory.v1.MemoryService/<Rpc>" */
  path: string;
  /** Name of the process that serves it: the first segment of the proto package. */
  audience: string;
  options: MethodOptions;
  /** What the comment of the method says. */
  description: string;
  /** One for the rule itself and one for each additional binding. */
  bindings: readonly HttpBinding[];
  requestType: Type;
  responseType: Type;
  /** It is server-streaming: the replies are events. */
  streams: boolean;
}
export interface HttpBinding {
  verb: string;
  /** "/api/memory/types/{id}" */
  template: string;
  /** "*": every member of the body is a field of the request; empty: no body. */
  body: string;
  /** camelCase name of the response field that is the reply's body; empty: the whole response. */
  responseBody: string;
}

interface RawRule {
  get?: string;
  put?: string;
  post?: string;
  delete?: string;
  patch?: string;
  body?: string;
  response_body?: string;
  additional_bindings?: RawRule | RawRule[];
}
const VERBS = ['get', 'put', 'post', 'delete', 'patch'] as const;

/** A comment as one paragraph. */
export const textOf = (comment: string | null | undefined): string =>
  (comment ?? '').replaceAll(/\s*\n\s*/g, ' ').trim();

let read: readonly RestMethod[] | undefined;

/** All methods that have a REST route; read once per process. */
export function restMethods(): readonly RestMethod[] {
  read ??= declaredMethods().flatMap(({ path, options, method }) => {
    const rule = (options as { '(google.api.http)'?: RawRule })['(google.api.http)'];
    if (!rule) return [];
    return [
      {
        path,
        audience: path.slice(1).split('.', 1)[0] as string,
        options: methodOptionsOf(path),
        description: textOf(method.comment),
        // protobufjs gives one additional binding as an object, several as an array
        bindings: [rule, ...[rule.additional_bindings ?? []].flat()].map((raw) => bindingOf(path, raw)),
        requestType: method.resolvedRequestType as Type,
        responseType: method.resolvedResponseType as Type,
        streams: method.responseStream === true,
      },
    ];
  });
  return read;
}

function bindingOf(path: string, rule: RawRule): HttpBinding {
  const verb = VERBS.find((candidate) => rule[candidate] !== undefined);
  if (!verb) throw new Error(`${path}: its google.api.http rule has no path`);
  return {
    verb: verb.toUpperCase(),
    template: rule[verb] as string,
    body: rule.body ?? '',
    responseBody: camelCase(rule.response_body ?? ''),
  };
}

const NO_OPTIONS = FieldOptions.decode(new Uint8Array());

/** The options of a field (platform.v1.field); every option that is not set is false or empty. */
export function fieldOptions(field: Field): FieldOptions {
  // protobufjs does not convert option names to camelCase, and wrongly types parsedOptions as one object
  const options = (field.parsedOptions ?? []) as unknown as readonly Record<
    string,
    Record<string, unknown> | undefined
  >[];
  const given = options.flatMap((option) => Object.entries(option['(platform.v1.field)'] ?? {}));
  return { ...NO_OPTIONS, ...Object.fromEntries(given.map(([name, value]) => [camelCase(name), value])) };
}

/** True if the field distinguishes absent from empty: it is `optional`, in a oneof, or a message. */
export const hasPresence = (field: Field): boolean =>
  Boolean(field.partOf) || (!field.repeated && Boolean(field.resolvedType && 'fields' in field.resolvedType));

/** Maps the number of each value of an outcome enum to its HTTP status; 200 if none is declared. */
export function httpStatuses(outcome: Enum): ReadonlyMap<number, number> {
  const options = (outcome.valuesOptions ?? {}) as Record<string, Record<string, number> | undefined>;
  return new Map(
    Object.entries(outcome.values).map(([name, value]) => [value, options[name]?.['(platform.v1.http_status)'] ?? 200]),
  );
}
