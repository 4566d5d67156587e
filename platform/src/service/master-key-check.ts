import type { Sealing } from '../core/sealing.ts';
import type { SealedDocuments } from '../jobs/reseal.ts';
import type { Check } from './diagnose.ts';

export const MASTER_KEY_CHECK = 'master key';
/** A count beyond this says no more. */
const MAX_COUNTED = 1_000;

/** What `admin doctor` looks at: is everything sealed under the newest master key, and is that in its file? */
export const masterKeyCheck = <D>(
  sealing: Pick<Sealing, 'sealsUnder' | 'ageOf' | 'hasFile'>,
  { notUnder, textsOf }: SealedDocuments<D>,
): Check => ({
  name: MASTER_KEY_CHECK,
  async look() {
    // First the key and then the documents, so that everything is counted that this replica has sealed under another.
    const sealsUnder = sealing.sealsUnder();
    const count = { present: 0, older: 0, lost: 0 };
    for await (const document of notUnder(sealsUnder)) {
      const ages = textsOf(document).map(({ purpose, sealed }) => sealing.ageOf(purpose, sealed));
      if (ages.includes('older')) count.older += 1;
      if (ages.includes('lost')) count.lost += 1;
      if (count.older === MAX_COUNTED) break;
    }
    const faults = [
      ...(sealing.hasFile() ? [] : ['its file cannot be read: bring it back before a restart']),
      ...(count.older > 0 ? [`older ones are needed for ${count.older} (job reseal)`] : []),
      ...(count.lost > 0 ? [`MASTER_KEY_FILE does not hold the key for ${count.lost}`] : []),
    ];
    return {
      fine: faults.length === 0,
      sentence: [`${sealsUnder} seals`, ...(faults.length === 0 ? ['and nothing needs an older one'] : faults)].join(
        ', ',
      ),
      masterKey: sealsUnder,
    };
  },
});
