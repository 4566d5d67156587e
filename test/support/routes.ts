import { restMethods, type RestMethod } from '../../gateway/src/contract/rest-methods.ts';
import { newId } from 'platform/core/ids.ts';

export interface RouteUnderTest {
  /** "PUT /api/memory/types/{path_id}" */
  name: string;
  verb: string;
  template: string;
  /** A path of this route that leads to nothing. */
  path: string;
  takesBody: boolean;
  method: RestMethod;
}

/** Every route of the contract, so that a test of all routes meets the next one by itself. */
export const ROUTES: readonly RouteUnderTest[] = restMethods().flatMap((method) =>
  method.bindings.map(({ verb, template, body }) => ({
    name: `${verb} ${template}`,
    verb,
    template,
    method,
    takesBody: body !== '',
    path: template.replaceAll(/\{\w+\}/g, () => newId()),
  })),
);
