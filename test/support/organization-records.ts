import { AuthServiceService, type AuditEntry } from 'proto/auth/v1/auth.ts';
import { CreditsServiceService, type Account, type LedgerRow } from 'proto/credits/v1/credits.ts';
import { ServiceError, type KnownReason } from 'platform/core/errors.ts';
import { request, type Reply, type Stack, type Tenant } from './stack.ts';

/** A tenant may outlive the stack that made it: where it is asked for and by which token. */
export type Of = Pick<Tenant, 'organizationId' | 'token'>;

const PAGE = 1_000;
const PATIENCE_MS = 60_000;

/** Asks again while the answer is that nothing was done: an engine may be busy yet with what killed processes had begun. */
export async function retryWhileUnavailable<T>(
  ask: () => Promise<T>,
  passing: readonly KnownReason[] = ['UNAVAILABLE'],
): Promise<T> {
  for (const giveUpAt = Date.now() + PATIENCE_MS; ;) {
    try {
      return await ask();
    } catch (error) {
      if (!(error instanceof ServiceError && passing.includes(error.reason)) || Date.now() > giveUpAt) throw error;
    }
  }
}

/** A page that must be there. */
const pageAt = (url: string, token: string): Promise<Reply> =>
  retryWhileUnavailable(async () => {
    const reply = await request('', 'GET', url, { token });
    if (reply.status === 503) throw new ServiceError('UNAVAILABLE', reply.text);
    if (reply.status !== 200) throw new Error(`${url}: ${reply.status} ${reply.text}`);
    return reply;
  });

/** The account, and the whole ledger, oldest row first. */
export async function ledgerOf(
  { operator }: Stack,
  { organizationId }: Of,
): Promise<{ account: Account; rows: LedgerRow[] }> {
  const credits = operator.client(CreditsServiceService, 'credits');
  const { account } = await retryWhileUnavailable(() => credits.getBalance({}, operator.as(organizationId)));
  if (!account) throw new Error('credits answered without an account');
  const rows: LedgerRow[] = [];
  for (let left = true; left;) {
    const page = await retryWhileUnavailable(() =>
      credits.listLedgerRows(
        { pageSize: PAGE, beforeSequence: rows.at(-1)?.sequence ?? 0 },
        operator.as(organizationId),
      ),
    );
    rows.push(...page.rows);
    left = page.rows.length === PAGE;
  }
  return { account, rows: rows.reverse() };
}

/** Every row follows from the one before, nothing is ever below zero, and the last one is the account. */
export function expectToAddUp({ account, rows }: { account: Account; rows: readonly LedgerRow[] }): void {
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
export async function auditTrailOf({ operator }: Stack, { organizationId }: Of, action = ''): Promise<AuditEntry[]> {
  const auth = operator.client(AuthServiceService, 'auth');
  const entries: AuditEntry[] = [];
  for (let left = true; left;) {
    const page = await retryWhileUnavailable(() =>
      auth.listAuditEntries(
        { pageSize: PAGE, beforeId: entries.at(-1)?.id ?? '', action },
        operator.as(organizationId),
      ),
    );
    entries.push(...page.entries);
    left = page.entries.length === PAGE;
  }
  return entries;
}

export interface Execution {
  id: string;
  status: string;
  charge: number | null;
}

/** Every agent execution, by following Link: next. */
export async function executionsOf({ baseUrl }: Stack, { token }: Of): Promise<Execution[]> {
  const executions: Execution[] = [];
  for (let url: string | undefined = `${baseUrl}/api/agent/executions?pageSize=100`; url !== undefined;) {
    const { body, headers }: Reply = await pageAt(url, token);
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

/** Every object of a type by its pages, and the total that each of them tells. */
export async function objectsOf(
  { baseUrl }: Stack,
  { token }: Of,
  typeId: string,
): Promise<{ totals: number[]; items: ListedObject[] }> {
  const [totals, items]: [number[], ListedObject[]] = [[], []];
  for (let page = 1; page === 1 || items.length === (page - 1) * 100; page++) {
    const { body } = await pageAt(`${baseUrl}/api/memory/objects?typeId=${typeId}&page=${page}&pageSize=100`, token);
    totals.push(body.total);
    items.push(...body.items);
  }
  return { totals, items };
}
