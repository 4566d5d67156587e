import { invalid, ServiceError } from 'platform/core/errors.ts';
import { isAdmin, type Principal } from 'platform/core/principal.ts';

/**
 * Who sees a type and its objects: `organization`, everybody in it; `group`, who is in one of the type's groups;
 * `private`, nobody else. Admins and server tokens see all.
 */
export const VISIBILITIES = ['private', 'group', 'organization'] as const;
export type Visibility = (typeof VISIBILITIES)[number];

const EVERYBODY = 'organization';
const groupIn = (name: string): string => `group:${name}`;

/** Who sees a type beside admins and server tokens, as its stored `audience`. */
export const audienceOf = ({ visibility, groupNames }: { visibility: Visibility; groupNames: string[] }): string[] =>
  visibility === 'organization' ? [EVERYBODY] : visibility === 'group' ? groupNames.map(groupIn) : [];

/** Whether everybody of the second audience is of the first. */
export const covers = (audience: readonly string[], other: readonly string[]): boolean =>
  audience.includes(EVERYBODY) || other.every((one) => audience.includes(one));

/** A store filter. It is part of every read of types and fences, so that what a principal may not see is not found. */
export type VisibilityFilter = {
  readonly audience?: { readonly containsAny: readonly string[] };
  readonly typeLower?: { readonly in: readonly string[] };
};
/** An agent execution sees the types that the definition of its agent lists, whoever else sees them. */
export const visibleTo = (principal: Principal): VisibilityFilter => {
  if (principal.kind === 'AGENT_EXECUTION') return { typeLower: { in: principal.memoryTypes.map(foldTypeName) } };
  return isAdmin(principal) ? {} : { audience: { containsAny: [EVERYBODY, ...principal.groups.map(groupIn)] } };
};

/** The filter for types of this name, of those that are visible. */
export function named(
  type: string,
  visible: VisibilityFilter,
): Omit<VisibilityFilter, 'typeLower'> & { typeLower: string | { in: readonly string[] } } {
  const typeLower = foldTypeName(type);
  return { ...visible, typeLower: isListed(visible, { typeLower }) ? typeLower : { in: [] } };
}

/** False for a type that the definition of an agent does not list. */
export const isListed = (visible: VisibilityFilter, type: { typeLower: string }): boolean =>
  !visible.typeLower || visible.typeLower.in.includes(type.typeLower);

/** Whether the filter lets this type through. */
export const isVisible = (
  visible: VisibilityFilter,
  type: { audience: readonly string[]; typeLower: string },
): boolean =>
  isListed(visible, type) &&
  (!visible.audience || type.audience.some((one) => visible.audience!.containsAny.includes(one)));

/** What the objects of a type obey, and what is to be read of them: JSON texts. A real change raises `version`. */
export interface Definition {
  jsonSchema: string;
  idSchema: string | null;
  embeddingSchema: string | null;
  relations: string;
}

/** The fields of a memory type that a client may set. */
export interface MemoryTypeFields extends Definition {
  type: string;
  displayName: string;
  description: string;
  visibility: string;
  groupNames: string[];
}

const TYPE = /^[A-Za-z][A-Za-z0-9_.-]{0,63}$/;
const PRINTABLE = /^[^\p{C}\p{Zl}\p{Zp}]{1,100}$/u;
const DESCRIPTION_MAX = 2_000;
const MAX_GROUPS = 100;
/** What a stored type takes beside its texts, rounded up; most of it are its 64 fences on MongoDB. */
const TYPE_BYTES = 32_768;

/** The stored bytes of a type, as the tier's limit `memory_bytes` counts them. */
export const typeBytes = ({
  type,
  displayName,
  description,
  jsonSchema,
  idSchema,
  embeddingSchema,
  groupNames,
  relations,
}: Omit<MemoryTypeFields, 'visibility'>): number =>
  TYPE_BYTES +
  [
    type,
    displayName,
    description,
    jsonSchema,
    idSchema ?? '',
    embeddingSchema ?? '',
    ...groupNames,
    relations.slice(2),
  ].reduce((sum, text) => sum + Buffer.byteLength(text), 0);

/**
 * Checks the fields that are present, except jsonSchema.
 * @throws ServiceError INVALID_REQUEST naming the first wrong field
 */
export function checkFields({
  type,
  displayName,
  description,
  visibility,
  groupNames,
}: Partial<Pick<MemoryTypeFields, 'type' | 'displayName' | 'description' | 'visibility' | 'groupNames'>>): void {
  if (type !== undefined && !TYPE.test(type))
    throw invalid('/type', 'type must be a letter and up to 63 more letters, digits, ".", "_" or "-"');
  if (displayName !== undefined && (!PRINTABLE.test(displayName) || displayName.trim() === ''))
    throw invalid('/displayName', 'displayName must be 1 to 100 printable characters');
  if (description !== undefined && Array.from(description).length > DESCRIPTION_MAX)
    throw invalid('/description', `description must be at most ${DESCRIPTION_MAX} characters`);
  if (visibility !== undefined && !VISIBILITIES.some((one) => one === visibility))
    throw invalid('/visibility', 'visibility must be "private", "group" or "organization"');
  if (groupNames !== undefined) checkGroupNames(groupNames);
}

function checkGroupNames(names: readonly string[]): void {
  if (names.length > MAX_GROUPS) throw invalid('/groupNames', `groupNames must have at most ${MAX_GROUPS} elements`);
  names.forEach((name, index) => {
    if (!PRINTABLE.test(name) || name.trim() === '')
      throw invalid(`/groupNames/${index}`, 'a group name must be 1 to 100 printable characters');
    if (names.indexOf(name) !== index) throw invalid(`/groupNames/${index}`, 'a group name must not be given twice');
  });
}

/** What happens with a type: its objects are checked for a change, or deleted with it. */
export type TypeState = 'active' | 'changing' | 'deleting';

/** @throws ServiceError TYPE_CHANGING while anything is under way that changes the type or deletes it */
export function requireActive({ state }: { state: TypeState }): void {
  if (state === 'active') return;
  const what = state === 'deleting' ? 'is being deleted' : 'is being changed';
  throw new ServiceError('TYPE_CHANGING', `The memory type ${what}`);
}

/** Names of types are unique and found regardless of case: equal names give equal results. */
export const foldTypeName = (type: string): string => type.toLowerCase();
