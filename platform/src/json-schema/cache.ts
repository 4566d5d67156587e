import { hash } from 'node:crypto';
import { fairCache } from '../core/fair-cache.ts';
import { compileSchema, type CompiledSchema, type CompileOptions } from './schema.ts';

export interface SchemaCache {
  /** As `compileSchema`. Schemas that this organization used last are not compiled again. */
  compile(organizationId: string, schemaText: string, options?: CompileOptions): CompiledSchema;
}

/** @param maxBytes of heap, for the compiled schemas of all organizations */
export function makeSchemaCache(maxBytes: number): SchemaCache {
  const cache = fairCache<CompiledSchema>(maxBytes);
  return {
    compile(organizationId, schemaText, options) {
      const places = options?.places ? JSON.stringify(options.places) : '';
      const key = hash('sha256', places + schemaText, 'base64');
      const known = cache.get(organizationId, key);
      if (known) return known;
      const compiled = compileSchema(schemaText, options);
      cache.set(organizationId, key, compiled, compiled.bytes);
      return compiled;
    },
  };
}
