import { compileSchema } from 'platform/json-schema/schema.ts';
import { ServiceError } from 'platform/core/errors.ts';

export const compile = (schema: unknown) => compileSchema(JSON.stringify(schema));
export const messagesOf = (schema: unknown, value: unknown) =>
  compile(schema)
    .validate(value)
    .map(({ path, message }) => `${path} ${message}`);
export const conforms = (schema: unknown, value: unknown) => compile(schema).validate(value).length === 0;
export const TOO_COSTLY = [' takes more steps to check against the schema than are allowed'];

export function rejection(schema: unknown, path?: string): string {
  try {
    compileSchema(typeof schema === 'string' ? schema : JSON.stringify(schema), { path });
  } catch (error) {
    if (!(error instanceof ServiceError) || error.reason !== 'INVALID_SCHEMA') throw error;
    return error.details.map((detail) => `${detail.path} ${detail.message}`).join('; ');
  }
  return 'accepted';
}

export const many = <T>(count: number, make: (i: number) => T): T[] => Array.from({ length: count }, (_, i) => make(i));
export const object = <T>(count: number, make: (i: number) => [string, T]): Record<string, T> =>
  Object.fromEntries(many(count, make));
export const nested = (levels: number): unknown => (levels === 0 ? 1 : { c: nested(levels - 1) });
