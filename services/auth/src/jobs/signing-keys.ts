import { HOUR_MS } from 'platform/core/clock.ts';
import type { Job } from 'platform/jobs/jobs.ts';
import type { Deps } from '../deps.ts';
import { addKey } from '../signing-keys/add-key.ts';
import { isRotationDue, PUBLISHED_BEFORE_MS } from '../signing-keys/rules.ts';

type Needs = Pick<Deps, 'signingKeys' | 'sealing' | 'clock' | 'config'>;

export const signingKeysJob = (deps: Needs): Job => ({
  name: 'signing-keys',
  description: 'Makes the next key that signs JWTs when it is due.',
  intervalMs: HOUR_MS,
  async run() {
    const keys = await deps.signingKeys.all();
    if (!isRotationDue(keys, deps.clock.now(), deps.config.JWT_KEY_DAYS)) return 0;
    return (await addKey(deps, keys, { signsAfterMs: PUBLISHED_BEFORE_MS })) ? 1 : 0;
  },
});
