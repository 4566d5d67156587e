import { Command } from 'commander';
import { CreditsServiceService, type Account, type LedgerRow } from 'proto/credits/v1/credits.ts';
import { ERRORS, ServiceError } from 'platform/core/errors.ts';
import { newId } from 'platform/core/ids.ts';
import type { Context } from './context.ts';
import { inCredits, toMicros, type Column } from './output.ts';
import { pageOf } from './page.ts';
import { pageSize, UsageError, wholeNumber } from './usage-error.ts';

const COLUMNS: readonly Column<LedgerRow>[] = [
  { title: 'Row', value: (row) => row.sequence },
  { title: 'Time', value: (row) => row.createdAt },
  { title: 'Kind', value: (row) => row.kind.toLowerCase() },
  { title: 'Change', value: (row) => inCredits(row.availableDeltaMicros) },
  { title: 'Available', value: (row) => inCredits(row.availableMicros) },
  { title: 'Charge', value: (row) => inCredits(row.spentDeltaMicros) },
  { title: 'Reserved', value: (row) => inCredits(row.reservedMicros) },
  { title: 'Shortfall', value: (row) => inCredits(row.shortfallMicros) },
  { title: 'Actor', value: (row) => row.actor },
  { title: 'Id', value: (row) => row.id, narrowed: 'id' },
];

export function creditsCommand(context: Context): Command {
  const credits = () => context.client(CreditsServiceService, 'credits');
  const show = (account: Account): void =>
    context.printRecord(account, {
      available: inCredits(account.availableMicros),
      reserved: inCredits(account.reservedMicros),
      spent: inCredits(account.spentMicros),
      granted: inCredits(account.grantedMicros),
      openReservations: account.openReservations,
      ledgerRows: account.sequence,
    });
  const command = new Command('credits').description("an organization's credits");
  command
    .command('grant <credits>')
    .description('add credits (up to six decimals)')
    .option('--id <uuid>', 'id of the grant; repeating a grant with the same id changes nothing (default: a new id)')
    .option('--note <text>', 'reason, kept in the ledger', '')
    .action(async (amount: string, { id = newId(), note }: { id?: string; note: string }) => {
      const amountMicros = toMicros(amount);
      if (!amountMicros) throw new UsageError(`${amount} is not an amount of credits`);
      const options = await context.onOrganization();
      const { account } = await credits()
        .grant({ id, amountMicros, note }, options)
        .catch((error: unknown) => {
          throw outcomeIsUnknown(error)
            ? new ServiceError(
                error.reason,
                `${error.message}\nRepeat the grant with --id ${id}: it is applied only once`,
                { cause: error },
              )
            : error;
        });
      show(account as Account);
    });
  command
    .command('balance')
    .description('show the account')
    .action(async () => show((await credits().getBalance({}, await context.onOrganization())).account as Account));
  command
    .command('rebuild')
    .description('rebuild the account from its ledger rows, after Redis has lost or forked data')
    .action(async () => show((await credits().rebuildLedger({}, await context.onOrganization())).account as Account));
  command
    .command('ledger')
    .description('list the ledger, newest first')
    .option('--page-size <n>', 'rows per page', pageSize, 50)
    .option('--before <row>', 'rows below this number', wholeNumber(0, Number.MAX_SAFE_INTEGER), 0)
    .action(async ({ pageSize, before }: { pageSize: number; before: number }) => {
      const options = await context.onOrganization();
      const list = async (size: number, beforeSequence: number) =>
        (await credits().listLedgerRows({ pageSize: size, beforeSequence }, options)).rows;
      context.printPage(await pageOf(pageSize, before, list, ({ sequence }) => sequence), COLUMNS, '--before');
    });
  return command;
}

/**
 * True unless the service rejected the request: the request may have been applied before the service or network failed.
 */
const outcomeIsUnknown = (error: unknown): error is ServiceError =>
  error instanceof ServiceError && ERRORS[error.reason].http >= ERRORS.CLIENT_GONE.http;
