import type { EmbeddingSchema } from 'proto/memory/v1/memory.ts';
import { invalid } from 'platform/core/errors.ts';
import { requirePointers } from './id-schema.ts';

const MAX_FIELDS = 64;
const MAX_DIMENSIONS = 65_536;
const MODEL = /^[^\p{C}\p{Zl}\p{Zp}]{1,100}$/u;
const METRICS = ['cosine', 'dot', 'euclidean'];

/**
 * An embeddingSchema as it is stored.
 * @throws ServiceError INVALID_REQUEST naming the wrong member
 */
export function checkEmbeddingSchema({ fields, model, dimensions, metric }: EmbeddingSchema): EmbeddingSchema {
  if (fields.length === 0 || fields.length > MAX_FIELDS)
    throw invalid('/embeddingSchema/fields', `fields must have 1 to ${MAX_FIELDS} elements`);
  requirePointers(fields, '/embeddingSchema/fields');
  if (model !== undefined && !MODEL.test(model))
    throw invalid('/embeddingSchema/model', 'model must be 1 to 100 printable characters');
  if (dimensions !== undefined && (dimensions < 1 || dimensions > MAX_DIMENSIONS))
    throw invalid('/embeddingSchema/dimensions', `dimensions must be 1 to ${MAX_DIMENSIONS}`);
  if (metric !== undefined && !METRICS.includes(metric))
    throw invalid('/embeddingSchema/metric', 'metric must be "cosine", "dot" or "euclidean"');
  return { fields, model, dimensions, metric };
}
