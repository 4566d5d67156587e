import { keyIdOf } from 'platform/core/sealing.ts';
import type { Job } from 'platform/jobs/jobs.ts';
import { resealJob, type SealedDocuments } from 'platform/jobs/reseal.ts';
import type { Deps } from '../deps.ts';
import { acceptedKeysAt, purposeOf } from '../signing-keys/rules.ts';
import type { SigningKeyRecord } from '../signing-keys/store.ts';

type Needs = Pick<Deps, 'signingKeys' | 'clock'>;

/** The private keys that sign or may sign. Those of before are never opened again. */
export const sealedSigningKeys = ({ signingKeys, clock }: Needs): SealedDocuments<SigningKeyRecord> => ({
  async *notUnder(keyId) {
    for (const key of acceptedKeysAt(await signingKeys.all(), clock.now()))
      if (keyIdOf(key.sealed) !== keyId) yield key;
  },
  textsOf: ({ _id, sealed }) => [{ purpose: purposeOf(_id), sealed }],
  async replace(key, renew) {
    const sealed = renew({ purpose: purposeOf(key._id), sealed: key.sealed });
    if (sealed === key.sealed) return false;
    await signingKeys.reseal(key, sealed);
    return true;
  },
});

export const resealSigningKeysJob = (deps: Needs & Pick<Deps, 'sealing'>): Job =>
  resealJob(deps.sealing, sealedSigningKeys(deps));
