import { exportJWK, generateKeyPair } from 'jose';
import { isoTime, type Clock } from 'platform/core/clock.ts';
import { newId } from 'platform/core/ids.ts';
import type { Sealing } from 'platform/core/sealing.ts';
import { ALGORITHM, purposeOf } from './rules.ts';
import type { SigningKeyRecord, SigningKeys } from './store.ts';

/**
 * Makes the key of the generation that follows these keys.
 * @param keys newest first
 * @returns undefined when another process has made it
 */
export async function addKey(
  { signingKeys, sealing, clock }: { signingKeys: SigningKeys; sealing: Sealing; clock: Clock },
  keys: readonly SigningKeyRecord[],
  { signsAfterMs, withdraw = false }: { signsAfterMs: number; withdraw?: boolean },
): Promise<SigningKeyRecord | undefined> {
  const { publicKey, privateKey } = await generateKeyPair(ALGORITHM, { extractable: true });
  const id = newId();
  const now = clock.now();
  const key: SigningKeyRecord = {
    _id: id,
    generation: (keys[0]?.generation ?? 0) + 1,
    publicKey: JSON.stringify(await exportJWK(publicKey)),
    sealed: sealing.seal(purposeOf(id), JSON.stringify(await exportJWK(privateKey))),
    createdAt: isoTime(now),
    signsFrom: isoTime(now + signsAfterMs),
    withdrawn: false,
  };
  const added = await signingKeys.add(key, withdraw ? keys.filter(({ withdrawn }) => !withdrawn) : []);
  return added ? key : undefined;
}
