import { AuthServiceService, type AuditEntry, type AuditPlace } from 'proto/auth/v1/auth.ts';
import { CreditsServiceService, type Account, type LedgerRow } from 'proto/credits/v1/credits.ts';
import { ServiceError } from 'platform/core/errors.ts';
import { request, type Reply } from './request.ts';
import { retryWhileUnavailable } from './retry-while-unavailable.ts';
import type { RunningStack } from './stack.ts';
import type { Tenant } from './tenant.ts';

/** What reads of an organization's records need; its data may outlive the stack on which it was created. */
export type TenantRef = Pick<Tenant, 'organizationId' | 'token'>;

const PAGE_SIZE = 1_000;

/** Reads a page of a list. */
const readPage = (url: string, token: string): Promise<Reply> =>
  retryWhileUnavailable(async () => {
    const reply = await request('', 'GET', url, { token });
    if (reply.status === 503) throw new ServiceError('UNAVAILABLE', reply.text);
    if (reply.status !== 200) throw new Error(`${url}: ${reply.status} ${reply.text}`);
    return reply;
  });

/** The credits account, and its whole ledger, oldest row first. */
export async function ledgerOf(
  { operator }: RunningStack,
  { organizationId }: TenantRef,
): Promise<{ account: Account; rows: LedgerRow[] }> {
  const credits = operator.client(CreditsServiceService, 'credits');
  const { account } = await retryWhileUnavailable(() => credits.getBalance({}, operator.as(organizationId)));
  if (!account) throw new Error('The reply of credits has no account');
  const rows: LedgerRow[] = [];
  for (let left = true; left;) {
    const page = await retryWhileUnavailable(() =>
      credits.listLedgerRows(
        { pageSize: PAGE_SIZE, beforeSequence: rows.at(-1)?.sequence ?? 0 },
        operator.as(organizationId),
      ),
    );
    rows.push(...page.rows);
    left = page.rows.length === PAGE_SIZE;
  }
  return { account, rows: rows.reverse() };
}

/** Expects that each row follows from the one before, no amount is ever negative, and the sums are the account. */
export function expectLedgerConsistent({ account, rows }: { account: Account; rows: readonly LedgerRow[] }): void {
  const sum = { available: 0, reserved: 0, spent: 0, granted: 0 };
  rows.forEach((row, index) => {
    sum.available += row.availableDeltaMicros;
    sum.reserved += row.reservedDeltaMicros;
    sum.spent += row.spentDeltaMicros;
    sum.granted += row.grantedDeltaMicros;
    expect({ sequence: row.sequence, available: row.availableMicros, reserved: row.reservedMicros }).toEqual({
      sequence: index + 1,
      available: sum.available,
      reserved: sum.reserved,
    });
    expect(sum.available + sum.reserved + sum.spent).toBe(sum.granted);
    expect(Math.min(...Object.values(sum))).toBeGreaterThanOrEqual(0);
  });
  expect(account).toMatchObject({
    availableMicros: sum.available,
    reservedMicros: sum.reserved,
    spentMicros: sum.spent,
    grantedMicros: sum.granted,
    sequence: rows.length,
  });
}

/** The whole audit trail, newest first. */
export async function auditTrailOf(
  { operator }: RunningStack,
  { organizationId }: TenantRef,
  action = '',
): Promise<AuditEntry[]> {
  const auth = operator.client(AuthServiceService, 'auth');
  const entries: AuditEntry[] = [];
  for (let left = true; left;) {
    const page = await retryWhileUnavailable(() =>
      auth.listAuditEntries(
        { pageSize: PAGE_SIZE, beforeId: entries.at(-1)?.id ?? '', action },
        operator.as(organizationId),
      ),
    );
    entries.push(...page.entries);
    left = page.entries.length === PAGE_SIZE;
  }
  return entries;
}

/** Expects the chain of the audit trail to have so many entries and no fault. */
export async function expectWholeTrail(
  { operator }: RunningStack,
  { organizationId }: TenantRef,
  count: number,
): Promise<void> {
  const auth = operator.client(AuthServiceService, 'auth');
  const [faults, checked]: [unknown[], number[]] = [[], []];
  for (let after: AuditPlace | undefined, more = true; more;) {
    const page = await retryWhileUnavailable(() =>
      auth.verifyAuditTrail({ pageSize: PAGE_SIZE, after }, operator.as(organizationId)),
    );
    faults.push(...page.faults);
    checked.push(page.entries);
    [after, more] = [page.last, page.hasMore];
  }
  const total = checked.reduce((sum, entries) => sum + entries, 0);
  expect({ faults, total }).toEqual({ faults: [], total: count });
}

export interface Execution {
  agent: string;
  id: string;
  status: string;
  charge: number | null;
}

/** Every agent execution, read by following `Link: <…>; rel="next"`. */
export async function executionsOf({ baseUrl }: RunningStack, { token }: TenantRef): Promise<Execution[]> {
  const executions: Execution[] = [];
  for (let url: string | undefined = `${baseUrl}/api/agent/executions?pageSize=100`; url !== undefined;) {
    const { body, headers }: Reply = await readPage(url, token);
    executions.push(...body.items);
    url = /<([^>]+)>; rel="next"/.exec(headers.get('link') ?? '')?.[1];
  }
  return executions;
}

export interface ListedObject {
  id: string;
  key: string;
  content: unknown;
}

/** Every memory object of a type, and the `total` of each page that was read. */
export async function objectsOf(
  { baseUrl }: RunningStack,
  { token }: TenantRef,
  typeId: string,
): Promise<{ totals: number[]; items: ListedObject[] }> {
  const [totals, items]: [number[], ListedObject[]] = [[], []];
  for (let page = 1; page === 1 || items.length === (page - 1) * 100; page++) {
    const { body } = await readPage(`${baseUrl}/api/memory/objects?typeId=${typeId}&page=${page}&pageSize=100`, token);
    totals.push(body.total);
    items.push(...body.items);
  }
  return { totals, items };
}
