import { invalid } from 'platform/core/errors.ts';

/** What a client may set of a memory type. */
export interface MemoryTypeFields {
  type: string;
  displayName: string;
  description: string;
  visibility: string;
  /** JSON text. */
  jsonSchema: string;
}

const TYPE = /^[A-Za-z][A-Za-z0-9_.-]{0,63}$/;
const PRINTABLE = /^[^\p{C}\p{Zl}\p{Zp}]{1,100}$/u;
const DESCRIPTION_MAX = 2_000;

/**
 * Checks the fields that are given, but for jsonSchema.
 * @throws ServiceError INVALID_REQUEST naming the first that breaks its rule
 */
export function checkFields({ type, displayName, description, visibility }: Partial<MemoryTypeFields>): void {
  if (type !== undefined && !TYPE.test(type))
    throw invalid('/type', 'type must be a letter and up to 63 more letters, digits, ".", "_" or "-"');
  if (displayName !== undefined && (!PRINTABLE.test(displayName) || displayName.trim() === ''))
    throw invalid('/displayName', 'displayName must be 1 to 100 printable characters');
  if (description !== undefined && Array.from(description).length > DESCRIPTION_MAX)
    throw invalid('/description', `description must be at most ${DESCRIPTION_MAX} characters`);
  if (visibility === 'group') throw notSupported('visibility', 'visibility "group" is not supported yet');
  if (visibility !== undefined && visibility !== 'organization' && visibility !== 'private')
    throw invalid('/visibility', 'visibility must be "organization" or "private"');
}

/** Members that a later version gives a meaning; until then only their default says the truth. JSON members are text. */
export interface LaterMembers {
  idSchema?: string | undefined;
  embeddingSchema?: string | undefined;
  groupNames: readonly string[];
  relations?: string | undefined;
}

/** @throws ServiceError NOT_SUPPORTED naming the member */
export function refuseLaterMembers({ idSchema, embeddingSchema, groupNames, relations }: LaterMembers): void {
  if (!isNull(idSchema)) throw notSupported('idSchema', 'idSchema is not supported yet: leave it out or send null');
  if (!isNull(embeddingSchema))
    throw notSupported('embeddingSchema', 'embeddingSchema is not supported yet: leave it out or send null');
  if (groupNames.length > 0)
    throw notSupported('groupNames', 'groupNames are not supported yet: leave them out or send []');
  if (relations === undefined || /^\s*\[\s*\]\s*$/.test(relations)) return;
  if (!relations.trimStart().startsWith('[')) throw invalid('/relations', 'relations must be an array');
  throw notSupported('relations', 'relations are not supported yet: leave them out or send []');
}

const isNull = (json: string | undefined): boolean => json === undefined || json.trim() === 'null';
const notSupported = (member: string, message: string) => invalid(`/${member}`, message, 'NOT_SUPPORTED');

/** Names of types are one regardless of case. */
export const foldType = (type: string): string => type.toLowerCase();
