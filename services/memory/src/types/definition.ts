import type { EmbeddingSchema, IdSchema } from 'proto/memory/v1/memory.ts';
import { canonicalJson } from 'platform/core/canonical-json.ts';
import { parseJson } from 'platform/core/parse-json.ts';
import { checkEmbeddingSchema } from './embedding-schema.ts';
import { checkIdSchema } from './id-schema.ts';
import type { Definition } from './rules.ts';

const MEMBERS = ['jsonSchema', 'idSchema', 'embeddingSchema', 'relations'] as const;

/**
 * The stored texts of the members that a request has; null where it has null.
 * @throws ServiceError INVALID_REQUEST naming the wrong member
 */
export const definitionTexts = ({
  idSchema,
  embeddingSchema,
}: {
  idSchema?: IdSchema | undefined;
  embeddingSchema?: EmbeddingSchema | undefined;
}): Pick<Definition, 'idSchema' | 'embeddingSchema'> => ({
  idSchema: idSchema ? JSON.stringify(checkIdSchema(idSchema)) : null,
  embeddingSchema: embeddingSchema ? JSON.stringify(checkEmbeddingSchema(embeddingSchema)) : null,
});

/**
 * The members in which two definitions differ as JSON values. Comparing them may take long: call it through the fair
 * scheduler.
 */
export const changedMembers = (before: Definition, after: Definition): (keyof Definition)[] =>
  MEMBERS.filter((name) => !sameJson(before[name], after[name]));

const sameJson = (a: string | null, b: string | null): boolean =>
  a === b || (a !== null && b !== null && canonicalJson(parseJson(a)) === canonicalJson(parseJson(b)));
