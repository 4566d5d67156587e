import { isDeepStrictEqual } from 'node:util';
import { isoTime } from 'platform/core/clock.ts';
import type { Job } from 'platform/jobs/jobs.ts';
import { resealJob, type SealedDocuments } from 'platform/jobs/reseal.ts';
import { update, type FindOptions } from 'platform/store/store.ts';
import type { Deps } from '../deps.ts';
import { expected, purposeOf, sealedValues, SECRETS, type SecretRecord } from '../secrets/store.ts';

type Needs = Pick<Deps, 'platformStore' | 'clock'>;

const BATCH = 50;

/** The secrets of all organizations. */
export const sealedSecrets = ({ platformStore, clock }: Needs): SealedDocuments<SecretRecord> => {
  /** Without a value that is used no longer. */
  const useful = ({ sealed, previous }: SecretRecord) => ({
    sealed,
    previous: previous && previous.until > isoTime(clock.now()) ? previous : null,
  });
  return {
    async *notUnder(keyId) {
      for (const sealedUnder of [null, { lt: keyId }, { gt: keyId }]) {
        const sort: FindOptions<SecretRecord>['sort'] = sealedUnder ? [['sealedUnder', 'asc']] : [];
        let last: SecretRecord | undefined;
        do {
          const after = last && [...(sealedUnder ? [last.sealedUnder!] : []), last._id];
          const batch = await platformStore.find(
            SECRETS,
            { sealedUnder },
            { sort, limit: BATCH, ...(after && { after }) },
          );
          yield* batch;
          last = batch.length === BATCH ? batch.at(-1) : undefined;
        } while (last);
      }
    },
    textsOf(record) {
      const { sealed, previous } = useful(record);
      return [sealed, ...(previous ? [previous.sealed] : [])].map((text) => ({
        purpose: purposeOf(record),
        sealed: text,
      }));
    },
    async replace(record, renew) {
      const { sealed, previous } = useful(record);
      const anew = (text: string): string => renew({ purpose: purposeOf(record), sealed: text });
      const set = sealedValues({
        sealed: anew(sealed),
        previous: previous && { ...previous, sealed: anew(previous.sealed) },
      });
      const { sealed: before, previous: previousBefore, sealedUnder } = record;
      if (isDeepStrictEqual(set, { sealed: before, previous: previousBefore, sealedUnder })) return false;
      // A new revision, so that nobody keeps as the previous value what was read before.
      await platformStore.apply([update(SECRETS, expected(record), { set, increment: { revision: 1 } })]);
      return true;
    },
  };
};

export const resealSecretsJob = (deps: Needs & Pick<Deps, 'sealing'>): Job =>
  resealJob(deps.sealing, sealedSecrets(deps));
