import type { CallableMethod } from 'platform/rpc/client.ts';
import type { Compress } from '../http/content-coding.ts';
import { fieldOptions, type HttpBinding, type RestMethod } from './rest-methods.ts';
import { camelCase, type MethodOptions } from 'platform/rpc/method-options.ts';
import { compileRequest, type ToMessage } from './transcode-request.ts';
import { compileResponse, type ToResponse } from './transcode-response.ts';

/** A route that calls a method of a service. */
export interface ServiceRoute {
  /** stream: its method is server-streaming, and its replies are Server-Sent Events. */
  kind: 'service' | 'stream';
  /** "/api/memory/types/{id}" */
  template: string;
  /** Name of the service's process. */
  audience: string;
  method: CallableMethod;
  options: MethodOptions;
  takesBody: boolean;
  /** Members of the body that are JSON Schemas. */
  schemaMembers: readonly string[];
  toMessage: ToMessage;
  toResponse: ToResponse;
}
/** A route that the gateway answers itself, without a token. */
export interface LocalRoute {
  kind: 'local';
  /** @throws ServiceError */
  reply(): { status: number; headers?: Record<string, string>; body: string; compress?: Compress };
}
export interface LocalEntry {
  verb: string;
  template: string;
  route: LocalRoute;
}
export type Route = ServiceRoute | LocalRoute;

/** One path with all of its verbs. */
export interface Resource {
  /** As its first route declares it. */
  template: string;
  routes: ReadonlyMap<string, Route>;
  /** Verbs for the Allow header. */
  allow: readonly string[];
}
export interface RouteTable {
  /** Every verb of every route, for `OPTIONS *`. */
  allow: readonly string[];
  /** `values` are the path parameters in their order, still percent-encoded. */
  find(path: string): { resource: Resource; values: string[] } | undefined;
}

/** Compiles both transcoders of one google.api.http binding. */
function serviceRoute(
  { path, audience, options, requestType, responseType, streams }: RestMethod,
  { verb, template, body, responseBody }: HttpBinding,
): ServiceRoute {
  if (body !== '' && body !== '*') throw new Error(`${path}: body must be "*" or absent in the google.api.http rule`);
  const takesBody = body === '*';
  const toResponse = compileResponse(responseType, responseBody);
  return {
    kind: streams ? 'stream' : 'service',
    template,
    audience,
    options,
    takesBody,
    schemaMembers: takesBody
      ? requestType.fieldsArray.filter((field) => fieldOptions(field).jsonSchema).map(({ name }) => name)
      : [],
    toMessage: compileRequest(requestType, {
      params: paramsOf(template),
      takesBody,
      reads: verb === 'GET',
      ignoredMembers: options.ignoredMembers,
    }),
    method: {
      path,
      responseStream: streams,
      requestSerialize: (message) => requestType.encode(message).finish() as Buffer,
      responseDeserialize: (bytes) => toResponse(bytes),
    },
    toResponse,
  };
}

export const serviceRoutes = (methods: readonly RestMethod[]): { verb: string; template: string; route: Route }[] =>
  methods.flatMap((method) =>
    method.bindings.map((binding) => ({
      verb: binding.verb,
      template: binding.template,
      route: serviceRoute(method, binding),
    })),
  );

const allowOf = (verbs: readonly string[]): string[] => [
  ...new Set([...verbs, ...(verbs.includes('GET') ? ['HEAD'] : []), 'OPTIONS']),
];

const PARAMETER = /\{(\w+)\}/g;
const paramsOf = (template: string): string[] =>
  Array.from(template.matchAll(PARAMETER), ([, name]) => camelCase(name as string));

/**
 * Groups routes by path, whatever the names of their parameters. A path without parameters takes precedence.
 * @throws Error for a route that is declared twice or a template that is not supported
 */
export function makeRouteTable(entries: readonly { verb: string; template: string; route: Route }[]): RouteTable {
  const byPath = new Map<string, Map<string, Route>>();
  const templates = new Map<string, string>();
  for (const { verb, template, route } of entries) {
    if (/[{}*:]/.test(template.replace(PARAMETER, '')))
      throw new Error(`${template}: a path template may hold only {name} parameters`);
    const path = template.replace(PARAMETER, '{}');
    const verbs = byPath.get(path) ?? new Map<string, Route>();
    if (verbs.has(verb)) throw new Error(`${verb} ${template} is declared twice`);
    byPath.set(path, verbs.set(verb, route));
    templates.set(path, templates.get(path) ?? template);
  }
  const fixed = new Map<string, Resource>();
  const patterns: { pattern: RegExp; resource: Resource }[] = [];
  for (const [path, routes] of byPath) {
    const resource = { template: templates.get(path)!, routes, allow: allowOf([...routes.keys()]) };
    if (!path.includes('{}')) fixed.set(path, resource);
    else
      patterns.push({
        pattern: new RegExp(`^${path.replace(/[.+?^$()|[\]\\]/g, '\\$&').replaceAll('{}', '([^/]+)')}$`),
        resource,
      });
  }
  return {
    allow: allowOf(entries.map(({ verb }) => verb)),
    find(path) {
      const resource = fixed.get(path);
      if (resource) return { resource, values: [] };
      for (const { pattern, resource: candidate } of patterns) {
        const match = pattern.exec(path);
        if (match) return { resource: candidate, values: match.slice(1) };
      }
      return undefined;
    },
  };
}
