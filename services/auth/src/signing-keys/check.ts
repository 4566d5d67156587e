import type { Check } from 'platform/service/diagnose.ts';
import type { Deps } from '../deps.ts';
import { openPrivateKey } from './private-key.ts';
import { signingKeyAt } from './rules.ts';

type Needs = Pick<Deps, 'signingKeys' | 'sealing' | 'clock'>;

/** What `admin doctor` looks at: can this replica issue JWTs? */
export const signingKeyCheck = ({ signingKeys, sealing, clock }: Needs): Check => ({
  name: 'signing key',
  async look() {
    const key = signingKeyAt(await signingKeys.all(), clock.now());
    if (!key) return { fine: false, sentence: 'there is none, so no JWT can be issued' };
    try {
      openPrivateKey(sealing, key);
    } catch {
      return { fine: false, sentence: 'MASTER_KEY_FILE does not hold the key under which it is sealed' };
    }
    return { fine: true, sentence: `number ${key.generation} signs since ${key.signsFrom.slice(0, 10)}` };
  },
});
