import {
  collection,
  insert,
  remove,
  update,
  type Op,
  type OrganizationDocument,
  type Store,
} from 'platform/store/store.ts';
import type { Visibility, Visible } from './visibility.ts';

/**
 * A type's K fence rows. Every batch that writes an object moves one of them, expecting the epoch under which it validated;
 * a change of the schema raises the epoch of all, a deletion removes them: a writer that was paused in between fails.
 * They carry the type's name and visibility, too, so that reads of objects need not load schemas.
 */
export interface Fence extends OrganizationDocument {
  typeId: string;
  type: string;
  typeLower: string;
  visibility: Visibility;
  k: number;
  epoch: number;
  /** Objects written under this row less those removed; only the sum over k means something. */
  count: number;
  /** Rises with every move: an engine may skip a change that changes nothing, and its conflict with it. */
  moves: number;
}
export const FENCES = collection<Fence>('fences', {
  scope: 'organization',
  indexes: [{ fields: ['typeId'] }, { fields: ['typeLower'] }, { fields: ['visibility'] }],
});

/** What a fence copies from its type. */
export type FencedType = Pick<Fence, 'organizationId' | 'type' | 'typeLower' | 'visibility' | 'epoch'> & {
  _id: string;
};

const fenceId = (typeId: string, k: number): string => `${typeId}:${k}`;
export const countOf = (fences: readonly Fence[]): number => fences.reduce((sum, { count }) => sum + count, 0);

export const insertFences = (
  { _id: typeId, organizationId, type, typeLower, visibility, epoch }: FencedType,
  rows: number,
): Op[] =>
  Array.from({ length: rows }, (_, k) =>
    insert(FENCES, {
      _id: fenceId(typeId, k),
      organizationId,
      typeId,
      type,
      typeLower,
      visibility,
      k,
      epoch,
      count: 0,
      moves: 0,
    }),
  );

/** Follows a change of the type. A new epoch is only for a type without objects: it expects the counts as they were read. */
export const changeFences = (fences: readonly Fence[], { type, typeLower, visibility, epoch }: FencedType): Op[] =>
  fences.map((fence) => {
    const asRead = fence.epoch === epoch ? { epoch } : { epoch: fence.epoch, count: fence.count };
    return update(FENCES, { _id: fence._id, ...asRead }, { set: { type, typeLower, visibility, epoch } });
  });

/** Goes with the type; expects the counts as they were read. */
export const removeFences = (fences: readonly Fence[]): Op[] =>
  fences.map(({ _id, epoch, count }) => remove(FENCES, { _id, epoch, count }));

export function fenceStore(store: Store) {
  return {
    /** Name, visibility and epoch of a type: its first row. */
    ofType: (organizationId: string, typeId: string, visible: Visible): Promise<Fence | undefined> =>
      store.findOne(organizationId, FENCES, { _id: fenceId(typeId, 0), ...visible }),
    /** First rows of several types. */
    ofTypes: (organizationId: string, typeIds: readonly string[]): Promise<Fence[]> =>
      store.find(organizationId, FENCES, { _id: { in: typeIds.map((typeId) => fenceId(typeId, 0)) } }),
    /** All rows of the types that fit. */
    find: (
      organizationId: string,
      filter: Visible & { readonly typeId?: string; readonly typeLower?: string },
    ): Promise<Fence[]> => store.find(organizationId, FENCES, filter),
    /** The fence of one object's batch, on the row that the batch took. */
    move: (typeId: string, epoch: number, row: number, by: 1 | 0 | -1): Op =>
      update(FENCES, { _id: fenceId(typeId, row), epoch }, { increment: { count: by, moves: 1 } }),
  };
}
export type FenceStore = ReturnType<typeof fenceStore>;
