import { restMethods, type RestMethod } from '../../gateway/src/contract/rest-methods.ts';
import { newId } from 'platform/core/ids.ts';

export interface RouteUnderTest {
  /** "PUT /api/memory/types/{path_id}" */
  name: string;
  verb: string;
  template: string;
  /** A path of this route whose ids do not exist. */
  path: string;
  takesBody: boolean;
  method: RestMethod;
}

/** Every route that needs a token, so that a test of all routes covers a new one without an edit. */
export const ROUTES: readonly RouteUnderTest[] = restMethods()
  .filter(({ options }) => !options.public)
  .flatMap((method) =>
    method.bindings.map(({ verb, template, body }) => ({
      name: `${verb} ${template}`,
      verb,
      template,
      method,
      takesBody: body !== '',
      path: template.replaceAll(/\{\w+\}/g, () => newId()),
    })),
  );
