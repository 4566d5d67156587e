import { hash } from 'node:crypto';
import type { ListMemoryObjectsRequest } from 'proto/memory/v1/memory.ts';
import { invalid } from 'platform/core/errors.ts';
import { isUuid } from 'platform/core/ids.ts';
import { foldTypeName } from '../types/rules.ts';

type Filter = Pick<ListMemoryObjectsRequest, 'typeId' | 'type' | 'key'>;

/** A place in a list: the object before or after which the page begins. */
export function cursorOf(filter: Filter, organizationId: string, id: string, side: 'older' | 'newer'): string {
  return Buffer.from(`${side} ${id} ${listOf(filter, organizationId)}`).toString('base64url');
}

/** @throws ServiceError INVALID_REQUEST for a cursor of another list, or one beside a page */
export function readCursor(
  { cursor = '', page, ...filter }: Filter & Pick<ListMemoryObjectsRequest, 'cursor' | 'page'>,
  organizationId: string,
): { id: string; newer: boolean } {
  if (page !== undefined) throw invalid('/cursor', 'cursor must not be given together with page');
  const [side, id = '', list] = Buffer.from(cursor, 'base64url').toString().split(' ');
  const isOfList = (side === 'older' || side === 'newer') && isUuid(id) && list === listOf(filter, organizationId);
  if (!isOfList || cursorOf(filter, organizationId, id.toLowerCase(), side) !== cursor)
    throw invalid('/cursor', 'cursor must be from a Link header of this list, with the same filter');
  return { id, newer: side === 'newer' };
}

/** Names the list: another filter gives another text. */
const listOf = ({ typeId, type, key }: Filter, organizationId: string): string =>
  hash(
    'sha256',
    JSON.stringify([
      organizationId,
      typeId?.toLowerCase() ?? null,
      type === undefined ? null : foldTypeName(type),
      key ?? null,
    ]),
    'base64url',
  ).slice(0, 16);
