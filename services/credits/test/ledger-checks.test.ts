import { join } from 'node:path';
import { newId } from 'platform/core/ids.ts';
import { temporaryFolder } from 'platform/service/testing.ts';
import { ledgerChecks } from '../src/ledger/checks.ts';
import { SERVICE_AUTHOR } from '../src/ledger/ledger.ts';
import { openSqliteLedger } from '../src/ledger/sqlite/ledger.ts';
import { RETENTION_MS } from './ledger-harness.ts';

const MINUTE_MS = 60_000;

it('the doctor is told of rows that nobody publishes and of reservations that nobody expires', async () => {
  const folder = temporaryFolder();
  let behindMs = 0;
  const clock = { now: () => Date.now() - behindMs };
  const { ledger, platformLedger, close } = await openSqliteLedger(join(folder.path, 'credits.db'), {
    clock,
    retentionMs: RETENTION_MS,
  });
  const look = () => Promise.all(ledgerChecks({ ledger, platformLedger }).map((check) => check.look()));
  expect(await look()).toEqual([
    { fine: true, sentence: 'none' },
    { fine: true, sentence: '0 open' },
  ]);

  await ledger.grant('A', { id: newId(), amountMicros: 10, note: '' }, SERVICE_AUTHOR);
  await ledger.reserve('A', { id: newId(), amountMicros: 1, ttlMs: 60 * MINUTE_MS, maxOpen: 0 }, SERVICE_AUTHOR);
  expect(await look()).toEqual([
    { fine: true, sentence: expect.stringMatching(/^2, the oldest since \d+ s$/) },
    { fine: true, sentence: '1 open' },
  ]);

  behindMs = 10 * MINUTE_MS;
  await ledger.grant('B', { id: newId(), amountMicros: 10, note: '' }, SERVICE_AUTHOR);
  await ledger.reserve('B', { id: newId(), amountMicros: 1, ttlMs: MINUTE_MS, maxOpen: 0 }, SERVICE_AUTHOR);
  expect(await look()).toEqual([
    { fine: false, sentence: expect.stringMatching(/^4, the oldest since \d{3,} s$/) },
    { fine: false, sentence: '2 open; the sweeper is late; organizations: 1' },
  ]);
  await close();
  folder.remove();
});
