import type { VerifyAuditTrailRequest, VerifyAuditTrailResponse } from 'proto/auth/v1/auth.ts';
import { requirePageSize } from 'platform/core/paging.ts';
import { organizationOfCall, type CallContext } from 'platform/rpc/call.ts';
import type { Deps } from '../deps.ts';
import { PAGE_SIZES } from '../organizations/rules.ts';
import { checkChain, removed, START, type Place } from './chain.ts';
import type { AuditEntries } from './store.ts';

type Faults = VerifyAuditTrailResponse['faults'];

/** @throws ServiceError INVALID_REQUEST */
export async function verifyAuditTrail(
  { auditEntries }: Pick<Deps, 'auditEntries'>,
  { pageSize, after, noted }: VerifyAuditTrailRequest,
  context: CallContext,
): Promise<VerifyAuditTrailResponse> {
  const organizationId = organizationOfCall(context);
  const size = requirePageSize(pageSize || undefined, PAGE_SIZES);
  const { entries, head, start, endAtLeast } = await pageAfter(auditEntries, organizationId, after, size);
  const from = after && after.sequence >= start.sequence ? after : start;
  const inChain = entries.filter(({ sequence }) => sequence <= head.sequence);
  const afterEnd = entries.slice(inChain.length);
  const { faults, last } = checkChain(from, inChain);
  const hasMore = entries.length === size && afterEnd.length === 0;
  const found: Faults = [
    ...faults,
    ...afterEnd.map(({ sequence, _id }) => ({ kind: 'added', sequence, entryId: _id })),
    ...(hasMore ? [] : faultsOfEnd(last, head, endAtLeast)),
    ...(noted && belongsHere(noted, !after, from, last, hasMore) && !isIn(noted, [from, ...inChain])
      ? [{ kind: 'noted', sequence: noted.sequence }]
      : []),
  ];
  const unchained = after ? 0 : await auditEntries.countUnchained(organizationId);
  return { faults: found, last, entries: entries.length, hasMore, head, start, unchained };
}

/**
 * A page of the chain beside appends and the retention. What was read is in the chain only up to the head as it is
 * afterwards; the trail must reach the head as it was before (`endAtLeast`).
 */
async function pageAfter(auditEntries: AuditEntries, organizationId: string, after: Place | undefined, size: number) {
  for (;;) {
    const before = await auditEntries.head(organizationId);
    const fromSequence = Math.max(after?.sequence ?? 0, before?.startSequence ?? 0);
    const entries = await auditEntries.chainAfter(organizationId, fromSequence, size);
    const now = await auditEntries.head(organizationId);
    // The retention has removed entries meanwhile, perhaps some of this page.
    if (now && now.startSequence > fromSequence) continue;
    const head = now ? { sequence: now.sequence, hash: now.hash } : START;
    const start = now ? { sequence: now.startSequence, hash: now.startHash } : START;
    return { entries, head, start, endAtLeast: before?.sequence ?? 0 };
  }
}

/** The last entry that was found must be the one in which the chain ends. */
function faultsOfEnd(last: Place, head: Place, endAtLeast: number): Faults {
  if (last.sequence < endAtLeast) return [removed(last.sequence + 1, endAtLeast)];
  return last.sequence === head.sequence && last.hash !== head.hash ? [{ kind: 'moved', sequence: last.sequence }] : [];
}

const isIn = (noted: Place, places: readonly Place[]): boolean =>
  places.some(({ sequence, hash }) => sequence === noted.sequence && hash === noted.hash);

/** Whether a noted place belongs on this page. One before the start was removed after its retention. */
function belongsHere(noted: Place, isFirst: boolean, from: Place, last: Place, hasMore: boolean): boolean {
  if (noted.sequence > last.sequence) return !hasMore;
  return noted.sequence > from.sequence || (isFirst && noted.sequence === from.sequence);
}
