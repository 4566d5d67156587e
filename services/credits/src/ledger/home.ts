import { hostname } from 'node:os';
import { getOrCreate } from 'platform/store/get-or-create.ts';
import { StartError } from 'platform/core/start-error.ts';
import { collection, insert, type Document, type PlatformStore } from 'platform/store/store.ts';

/** Where the ledger beside this document store is kept: a second place would fork the balances. */
interface LedgerHome extends Document {
  _id: 'ledger';
  /** Id of the ledger's file; '' for Redis, whose rows are compared with the mirror. */
  fileId: string;
  /** host:path of the file at its first start. */
  place: string;
}
export const LEDGER_HOME = collection<LedgerHome>('ledger_home', { scope: 'platform' });

/** Where this process would keep the ledger: in a file, or (none) in Redis. */
interface Claim {
  platformStore: PlatformStore;
  file?: { id: string; path: string };
}

/** The first process to start says where the ledger is; from then on it is there. @throws StartError for another place */
export async function claimHome({ platformStore, file }: Claim): Promise<void> {
  const claimed: LedgerHome = {
    _id: 'ledger',
    fileId: file?.id ?? '',
    place: file ? `${hostname()}:${file.path}` : '',
  };
  const home = await getOrCreate(
    () => platformStore.findOne(LEDGER_HOME, { _id: 'ledger' }),
    claimed,
    (first) => platformStore.apply([insert(LEDGER_HOME, first)]),
  );
  if (home.fileId === claimed.fileId) return;
  if (home.fileId === '')
    throw new StartError(
      'The credit ledger of this MongoDB database is kept in Redis: set REDIS_URL, without it the balances would start from nothing',
    );
  if (!file)
    throw new StartError(
      `The credit ledger of this MongoDB database is kept in the file ${home.place}: leave REDIS_URL out, in Redis the balances would start from nothing`,
    );
  throw new StartError(
    `The credit ledger of this MongoDB database is kept in another file, ${home.place}: several replicas of credits share one ledger by REDIS_URL`,
  );
}
