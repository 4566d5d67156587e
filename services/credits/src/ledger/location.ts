import { hostname } from 'node:os';
import { getOrCreate } from 'platform/store/get-or-create.ts';
import { StartError } from 'platform/core/start-error.ts';
import { collection, insert, type Document, type PlatformStore } from 'platform/store/store.ts';

/**
 * Where the ledger that belongs to this document store is kept. A ledger in a second location would fork the balances.
 */
interface LedgerLocationRecord extends Document {
  _id: 'ledger';
  /** Id of the ledger's file; '' for Redis, whose rows are verified against the mirror. */
  fileId: string;
  /** host:path of the file when the location was claimed. */
  place: string;
}
/** The stored name must not change: a second collection would look like a first start. */
export const LEDGER_LOCATION = collection<LedgerLocationRecord>('ledger_home', { scope: 'platform' });

/** Where this process would keep the ledger: in the given file, or in Redis where `file` is missing. */
interface Claim {
  platformStore: PlatformStore;
  file?: { id: string; path: string };
}

/** Records the ledger's location at the very first start. @throws StartError when another location is recorded */
export async function claimLocation({ platformStore, file }: Claim): Promise<void> {
  const claimed: LedgerLocationRecord = {
    _id: 'ledger',
    fileId: file?.id ?? '',
    place: file ? `${hostname()}:${file.path}` : '',
  };
  const location = await getOrCreate(
    () => platformStore.findOne(LEDGER_LOCATION, { _id: 'ledger' }),
    claimed,
    (first) => platformStore.apply([insert(LEDGER_LOCATION, first)]),
  );
  if (location.fileId === claimed.fileId) return;
  const ledger = 'The credit ledger of this MongoDB database is kept in';
  if (location.fileId === '')
    throw new StartError(`${ledger} Redis: set REDIS_URL, without it the balances would start from nothing`);
  if (!file)
    throw new StartError(
      `${ledger} the file ${location.place}: leave REDIS_URL out, in Redis the balances would start from nothing`,
    );
  throw new StartError(
    `${ledger} another file, ${location.place}: several replicas of credits share one ledger by REDIS_URL`,
  );
}
