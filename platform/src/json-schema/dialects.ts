import { createRequire } from 'node:module';

/** The dialects of JSON Schema that are taken, the oldest first. */
export const DIALECTS = ['draft-04', 'draft-06', 'draft-07', '2019-09', '2020-12'] as const;
export type Dialect = (typeof DIALECTS)[number];

type Json = Record<string, unknown>;
const require = createRequire(import.meta.url);
/** Of ajv's folder of meta-schemas. */
const documentOfAjv = (file: string): Json => require(`ajv/dist/refs/json-schema-${file}.json`) as Json;
const VOCABULARIES: Partial<Record<Dialect, readonly string[]>> = {
  '2019-09': ['core', 'applicator', 'validation', 'meta-data', 'format', 'content'],
  '2020-12': ['core', 'applicator', 'unevaluated', 'validation', 'meta-data', 'format-annotation', 'content'],
};

/** The URI of the meta-schema, without "#". */
export const metaSchemaUri = (dialect: Dialect): string =>
  dialect.startsWith('draft')
    ? `http://json-schema.org/${dialect}/schema`
    : `https://json-schema.org/draft/${dialect}/schema`;

/** The spelling of a URI of json-schema.org in `metaSchemaUri`: people write http or https, with or without "#". */
const normalized = (uri: string): string => uri.replace(/#$/, '').replace(/^https?:/, '');

/** By its meta-schema's URI; "http://json-schema.org/schema#" is that of the newest dialect. */
const BY_URI = new Map<string, Dialect>([
  ...DIALECTS.map((dialect): [string, Dialect] => [normalized(metaSchemaUri(dialect)), dialect]),
  ['//json-schema.org/schema', '2020-12'],
]);

/** The dialect whose meta-schema has this URI. */
export const dialectOfUri = (uri: string): Dialect | undefined => BY_URI.get(normalized(uri));

/** OpenAPI 3.1 and 3.2: 2020-12 with keywords that are annotations. */
const OF_OPENAPI = /^https:\/\/spec\.openapis\.org\/oas\/3\.[12]\/dialect\/[\w-]+#?$/;

/** The dialect that a value of $schema names. */
export const dialectOfSchema = (uri: string): Dialect | undefined =>
  OF_OPENAPI.test(uri) ? '2020-12' : dialectOfUri(uri);

/** Whether the URI is that of the meta-schema of one of the dialect's vocabularies. */
export const isVocabularyOf = (dialect: Dialect, uri: string): boolean =>
  normalized(uri).startsWith(`//json-schema.org/draft/${dialect}/meta/`);

/** The values of $schema that are taken, for people. */
export const KNOWN_SCHEMAS = DIALECTS.map((dialect) =>
  dialect.startsWith('draft') ? `${metaSchemaUri(dialect)}#` : metaSchemaUri(dialect),
);

/** Drafts 4 to 7 ignore whatever stands beside a $ref. */
export const refHidesSiblings = (dialect: Dialect): boolean => dialect.startsWith('draft');
/** What the URI of a schema is called. */
export const idKeyword = (dialect: Dialect): 'id' | '$id' => (dialect === 'draft-04' ? 'id' : '$id');

const documents = new Map<Dialect, readonly Json[]>();

/**
 * The documents of a dialect's meta-schema, the whole one first. A dynamic reference in them leads to the whole one, as
 * it does for whoever refers to that.
 */
export function metaSchemaDocuments(dialect: Dialect): readonly Json[] {
  const known = documents.get(dialect);
  if (known) return known;
  const whole =
    dialect === 'draft-04'
      ? (require('ajv-draft-04/dist/refs/json-schema-draft-04.json') as Json)
      : documentOfAjv(dialect.startsWith('draft') ? dialect : `${dialect}/schema`);
  const parts = (VOCABULARIES[dialect] ?? []).map((name) => documentOfAjv(`${dialect}/meta/${name}`));
  const made = [whole, ...parts].map((document) => withoutDynamics(document, metaSchemaUri(dialect)) as Json);
  documents.set(dialect, made);
  return made;
}

const DYNAMIC = new Set(['$dynamicRef', '$recursiveRef']);
const NAMES_OF_DYNAMIC = new Set(['$dynamicAnchor', '$recursiveAnchor']);

function withoutDynamics(value: unknown, uri: string): unknown {
  if (Array.isArray(value)) return value.map((part) => withoutDynamics(part, uri));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([name, part]) => !(NAMES_OF_DYNAMIC.has(name) && typeof part !== 'object'))
      .map(([name, part]) =>
        DYNAMIC.has(name) && typeof part === 'string' ? ['$ref', uri] : [name, withoutDynamics(part, uri)],
      ),
  );
}
