import { eachTest } from './harness.ts';
import { ledgerProperties } from './ledger-properties.ts';
import { ledgerSuite } from './ledger-suite.ts';
import { ledgerSuiteTime } from './ledger-suite-time.ts';
import { sqliteHarness } from './sqlite-harness.ts';

describe('the ledger on SQLite', () => {
  const each = eachTest(sqliteHarness);
  ledgerSuite(each);
  ledgerSuiteTime(each);
});
describe('the ledger on SQLite, at random', () => ledgerProperties(sqliteHarness));
