import type { CallableMethod } from 'platform/rpc/client.ts';
import type { HttpBinding, RestMethod } from './rest-methods.ts';
import { camelCase } from 'platform/rpc/method-options.ts';
import type { MethodOptions } from 'platform/rpc/method-options.ts';
import type { Reply } from '../http/reply.ts';
import { compileRequest, type ToMessage } from './transcode-request.ts';
import { compileAnswer } from './transcode-response.ts';

/** A route to a method of a service. */
export interface ServiceRoute {
  kind: 'service';
  audience: string;
  method: CallableMethod;
  policy: MethodOptions;
  takesBody: boolean;
  toMessage: ToMessage;
}
/** A route that this process answers itself, without a token. */
export interface LocalRoute {
  kind: 'local';
  reply(): Reply;
}
export type Route = ServiceRoute | LocalRoute;

/** One path with all of its verbs. */
export interface Resource {
  routes: ReadonlyMap<string, Route>;
  /** Verbs of the Allow header. */
  allow: readonly string[];
}
export interface RouteTable {
  /** Verbs of the server as a whole ("*"). */
  allow: readonly string[];
  find(path: string): { resource: Resource; values: string[] } | undefined;
}

/** The route of one google.api.http binding, with both of its transcoders compiled. */
function serviceRoute(
  { path, audience, policy, requestType, responseType }: RestMethod,
  { template, body, responseBody }: HttpBinding,
): ServiceRoute {
  if (body !== '' && body !== '*') throw new Error(`${path}: the body of a request is the whole message or nothing`);
  const takesBody = body === '*';
  return {
    kind: 'service',
    audience,
    policy,
    takesBody,
    toMessage: compileRequest(requestType, {
      params: paramsOf(template),
      takesBody,
      ignoredMembers: policy.ignoredMembers,
    }),
    method: {
      path,
      requestSerialize: (message) => requestType.encode(message).finish() as Buffer,
      responseDeserialize: compileAnswer(responseType, responseBody),
    },
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

/** Groups routes by path, whatever their parameters are called; a path without parameters wins. */
export function makeRouteTable(entries: readonly { verb: string; template: string; route: Route }[]): RouteTable {
  const byShape = new Map<string, Map<string, Route>>();
  for (const { verb, template, route } of entries) {
    if (/[{}*:]/.test(template.replace(PARAMETER, '')))
      throw new Error(`${template}: only {name} parameters are known`);
    const shape = template.replace(PARAMETER, '{}');
    const verbs = byShape.get(shape) ?? new Map<string, Route>();
    if (verbs.has(verb)) throw new Error(`${verb} ${template} is declared twice`);
    byShape.set(shape, verbs.set(verb, route));
  }
  const fixed = new Map<string, Resource>();
  const patterns: { pattern: RegExp; resource: Resource }[] = [];
  for (const [shape, routes] of byShape) {
    const resource = { routes, allow: allowOf([...routes.keys()]) };
    if (!shape.includes('{}')) fixed.set(shape, resource);
    else
      patterns.push({
        pattern: new RegExp(`^${shape.replace(/[.+?^$()|[\]\\]/g, '\\$&').replaceAll('{}', '([^/]+)')}$`),
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
