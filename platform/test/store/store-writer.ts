/** A process that writes until it is killed and prints the id of each acknowledged batch. Arguments: file, round. */
import { openSqliteStore } from 'platform/store/sqlite/store.ts';
import { collection, insert, update } from 'platform/store/store.ts';

export const ENTRIES = collection<{ _id: string; organizationId: string }>('entries', {
  scope: 'organization',
  indexes: [{ fields: [] }],
});
export const COUNTERS = collection<{ _id: string; organizationId: string; total: number }>('counters', {
  scope: 'organization',
});

async function write(file: string, round: string): Promise<never> {
  const { store } = await openSqliteStore(file, [ENTRIES, COUNTERS]);
  const writeBatch = async (_id: string): Promise<void> => {
    await store.apply('A', [
      insert(ENTRIES, { _id, organizationId: 'A' }),
      update(COUNTERS, { _id: 'c' }, { increment: { total: 1 } }),
    ]);
    process.stdout.write(`${_id}\n`);
  };
  for (let n = 0; ; n++)
    await Promise.all(Array.from({ length: 1 + (n % 8) }, (_, i) => writeBatch(`${round}.${n}.${i}`)));
}

const [, , file, round] = process.argv;
if (import.meta.main) await write(file!, round!);
