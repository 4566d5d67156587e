import { withLedger } from './ledger-harness.ts';
import { ledgerProperties } from './ledger-properties.ts';
import { ledgerSuite } from './ledger-suite.ts';
import { ledgerSuiteTime } from './ledger-suite-time.ts';
import { redisHarness, twoReplicas } from './redis-harness.ts';

describe('the ledger on Redis', () => {
  const context = withLedger(() => redisHarness());
  ledgerSuite(context);
  ledgerSuiteTime(context);
});
describe('two replicas of the ledger on Redis under random commands', () => ledgerProperties(twoReplicas));
