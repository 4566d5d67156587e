import { createHash } from 'node:crypto';
import { canonicalJson } from 'platform/core/canonical-json.ts';
import { ServiceError, invalid } from 'platform/core/errors.ts';
import { compileSchema } from 'platform/json-schema/schema.ts';
import { checkExpression } from '../runtimes/expression/expression.ts';
import { DEFINITION_BYTES, definitionSchema } from './definition-schema.ts';
import { priceOf, type Definition } from './rules.ts';

const document = compileSchema(JSON.stringify(definitionSchema));

/**
 * Definition document as JSON text -> definition and its hash (SHA-256 of the canonical document, hexadecimal).
 * @throws ServiceError MALFORMED_JSON, INVALID_REQUEST, INVALID_SCHEMA; paths point into the document
 */
export function parseDefinition(text: string): { definition: Definition; hash: string } {
  if (Buffer.byteLength(text) > DEFINITION_BYTES)
    throw invalid('', `A definition has at most ${DEFINITION_BYTES} bytes`);
  const value = parseJson(text);
  refuse(document.validate(value), 'The definition document is not valid');
  const definition = value as Definition;
  priceOf(definition);
  for (const member of ['argumentsSchema', 'outputSchema'] as const) {
    if (definition[member]) compileSchema(JSON.stringify(definition[member]), { path: `/${member}` });
  }
  refuse(
    checkExpression(definition.runtime.source).map(({ path, message }) => ({
      path: `/runtime/source${path}`,
      message,
    })),
    'The expression is not valid',
  );
  return { definition, hash: createHash('sha256').update(canonicalJson(value)).digest('hex') };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new ServiceError('MALFORMED_JSON', 'The definition is not valid JSON', { cause });
  }
}

function refuse(details: { path: string; message: string }[], message: string): void {
  if (details.length > 0) throw new ServiceError('INVALID_REQUEST', message, { details });
}
