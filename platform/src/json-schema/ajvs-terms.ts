import type { Dialect } from './dialects.ts';
import type { Json } from './subschema.ts';

/**
 * A subschema of any dialect in the terms of the two that ajv compiles: of draft-07 for drafts 4 to 7, and of 2020-12
 * for 2019-09 and 2020-12.
 */
export function inAjvsTerms(dialect: Dialect, schema: Json): Json {
  if (dialect === 'draft-04') return withLimitsAsNumbers(schema);
  return dialect === '2019-09' ? withPrefixItems(schema) : schema;
}

/** In draft-04, `exclusiveMinimum: true` says that `minimum` itself is too small. */
function withLimitsAsNumbers({ exclusiveMinimum, exclusiveMaximum, ...schema }: Json): Json {
  const { minimum, maximum, ...others } = schema;
  return {
    ...others,
    ...(minimum !== undefined && { [exclusiveMinimum === true ? 'exclusiveMinimum' : 'minimum']: minimum }),
    ...(maximum !== undefined && { [exclusiveMaximum === true ? 'exclusiveMaximum' : 'maximum']: maximum }),
  };
}

/** Since 2020-12, a list of `items` is called prefixItems, and `additionalItems` behind it items. */
function withPrefixItems({ additionalItems, ...schema }: Json): Json {
  if (!Array.isArray(schema['items'])) return schema;
  const { items, ...others } = schema;
  return { ...others, prefixItems: items, ...(additionalItems !== undefined && { items: additionalItems }) };
}
