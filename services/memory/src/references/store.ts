import { collection, insert, remove, type Op, type OrganizationDocument, type Store } from 'platform/store/store.ts';

/**
 * A reference: the content of `sourceId` has the key of `targetId` where one of its type's relations says so. It is
 * written in the batch that writes the source. Each object counts the references to it (`referrers`), and the batch
 * that makes or removes one changes that counter: so a target is not deleted while a reference to it is made.
 * A reference of a relation that the type no longer has means nothing, and goes with the next write of its source.
 */
export interface ReferenceRecord extends OrganizationDocument {
  sourceId: string;
  sourceTypeId: string;
  /** Id of the relation, which changes with its target type and path. */
  relationId: string;
  targetId: string;
}
export const REFERENCES = collection<ReferenceRecord>('references', {
  scope: 'organization',
  columns: { sourceId: 'id', sourceTypeId: 'id', relationId: 'id', targetId: 'id' },
  indexes: [{ fields: ['sourceId'] }, { fields: ['targetId'] }],
});

/** @param reference all but its `_id`: one object refers to another once by a relation */
export const insertReference = (reference: Omit<ReferenceRecord, '_id'>): Op =>
  insert(REFERENCES, { _id: referenceId(reference), ...reference });
export const removeReference = ({ _id }: ReferenceRecord): Op => remove(REFERENCES, { _id });
export const referenceId = ({
  sourceId,
  relationId,
  targetId,
}: Pick<ReferenceRecord, 'sourceId' | 'relationId' | 'targetId'>): string => `${sourceId}:${relationId}:${targetId}`;

export function openReferences(store: Store) {
  return {
    ofSource: (organizationId: string, sourceId: string): Promise<ReferenceRecord[]> =>
      store.find(organizationId, REFERENCES, { sourceId }),
    /** @param limit the most that are read */
    toTarget: (organizationId: string, targetId: string, limit: number): Promise<ReferenceRecord[]> =>
      store.find(organizationId, REFERENCES, { targetId }, { limit }),
  };
}
export type References = ReturnType<typeof openReferences>;

/** What the references of one object become with a write of it. */
export interface ReferencePlan {
  /** Of the object. */
  references: number;
  /** For the batch that writes the object; each fails it when a target is gone. */
  ops: Op[];
}
