import { keyIdOf, type Sealing } from '../core/sealing.ts';
import { ExpectationFailedError } from '../store/store.ts';
import type { Job } from './jobs.ts';

export interface SealedText {
  /** For what it was sealed. */
  purpose: string;
  sealed: string;
}

/** The stored documents of a service that have sealed texts. */
export interface SealedDocuments<D> {
  /** Those of which a text may be sealed otherwise than under the key with this id. */
  notUnder(keyId: string): AsyncIterable<D>;
  /** Its texts that are still of use. */
  textsOf(document: D): readonly SealedText[];
  /**
   * Writes the document with the texts as `renew` gives them. The write expects it as it was read.
   * @returns false when it is so already
   * @throws ExpectationFailedError when it was changed meanwhile
   */
  replace(document: D, renew: (text: SealedText) => string): Promise<boolean>;
}

/**
 * Each document is one compare-and-set, so it does not matter where a round ends. One that was changed meanwhile was
 * sealed by whoever changed it; if under an older key, the next round finds it.
 */
export const resealJob = <D>(sealing: Sealing, documents: SealedDocuments<D>): Job => ({
  name: 'reseal',
  description: 'Seals anew, under the newest master key, what is sealed under an older one.',
  // Repeated, since a replica may seal under the older key for a moment longer.
  intervalMs: 60_000,
  async run(signal) {
    const renew = ({ purpose, sealed }: SealedText): string =>
      sealing.ageOf(purpose, sealed) === 'older' ? sealing.seal(purpose, sealing.open(purpose, sealed)) : sealed;
    let count = 0;
    for await (const document of documents.notUnder(sealing.sealsUnder())) {
      if (signal.aborted) break;
      try {
        if (await documents.replace(document, renew)) count += 1;
      } catch (error) {
        if (!(error instanceof ExpectationFailedError)) throw error;
      }
    }
    return count;
  },
});

/** The ids of all master keys under which texts are sealed that are still of use. */
export async function masterKeysOf<D>({ notUnder, textsOf }: SealedDocuments<D>): Promise<string[]> {
  const ids = new Set<string>();
  for await (const document of notUnder('')) for (const { sealed } of textsOf(document)) ids.add(keyIdOf(sealed) ?? '');
  // The job seals anew, within a minute, what a release before ids has sealed.
  ids.delete('');
  return [...ids];
}
