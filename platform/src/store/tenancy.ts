import type { Document, Op } from './store.ts';

type Filter = Readonly<Record<string, unknown>>;
type Scoped = { readonly name: string; readonly scope: 'organization' | 'platform' };

function checkOrganization(organizationId: string): void {
  if (typeof organizationId !== 'string' || organizationId === '') throw new TypeError('organizationId must be text');
}

/** The filter, limited to one organization. @throws TypeError when it could match documents of another one */
export function scopedFilter(organizationId: string, collection: Scoped, filter: Filter): Filter {
  checkOrganization(organizationId);
  if (collection.scope !== 'organization') throw new TypeError(`${collection.name} does not belong to organizations`);
  if ('organizationId' in filter && filter.organizationId !== organizationId)
    throw new TypeError('the filter names another organization');
  return { ...filter, organizationId };
}

/** The operation, limited to one organization; one on a platform collection is left as it is. @throws TypeError */
export function scopedOp(organizationId: string, op: Op): Op {
  checkOrganization(organizationId);
  if (op.collection.scope !== 'organization') return op;
  if (op.kind !== 'insert')
    return { ...op, where: scopedFilter(organizationId, op.collection, op.where) as typeof op.where };
  if ((op.document as Document & { organizationId?: unknown }).organizationId !== organizationId)
    throw new TypeError(`${op.collection.name}: the document is not of this organization`);
  return op;
}
