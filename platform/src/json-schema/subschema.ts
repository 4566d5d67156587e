import type { Target } from './keywords.ts';

export type Json = Record<string, unknown>;

/** A part of a document with a URI of its own, by which references find it. */
export interface Resource {
  uri: string;
  root: Subschema;
}

/** A schema or one in it, with what lintSchema finds out about it. */
export interface Subschema {
  /** In the whole schema; of the dialect's meta-schema, beginning with another mark than "/". */
  pointer: string;
  schema: Json | boolean;
  resource: Resource;
  /** By keyword. The name is that of the member, the index in the list, or empty for a single subschema. */
  children: Map<string, { target: Target; subs: [name: string, sub: Subschema][] }>;
  ref?: Subschema;
  /** Name under $defs in the copy when references point to this subschema. */
  definition?: number;
  /** How many subschemas are applied to one value, this one included; undefined until it is counted. */
  applications?: number;
}
