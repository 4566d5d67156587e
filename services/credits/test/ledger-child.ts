// Sixteen callers use one ledger until the process is killed. Writes a line of JSON before each command and one after
// its answer.
import { randomInt } from 'node:crypto';
import { DAY_MS, HOUR_MS, systemClock } from 'platform/core/clock.ts';
import { newId } from 'platform/core/ids.ts';
import { openSqliteLedger } from '../src/ledger/sqlite/ledger.ts';
import { ada, RETENTION_MS } from './ledger-harness.ts';

const [file, organizationId] = process.argv.slice(2) as [string, string];
const { ledger } = await openSqliteLedger(file, { clock: systemClock, retentionMs: RETENTION_MS });

// Returns when the line is in the pipe: node writes to pipes synchronously.
const print = (line: object): boolean => process.stdout.write(`${JSON.stringify(line)}\n`);

async function perform(
  method: 'grant' | 'reserve' | 'settle' | 'release',
  ...args: unknown[]
): Promise<{ outcome: string }> {
  const call = newId();
  print({ call, method, args });
  const answer = await (ledger[method] as (...all: unknown[]) => Promise<{ outcome: string }>)(
    organizationId,
    ...args,
    ada,
  );
  print({ call, answer });
  return answer;
}

await Promise.all(
  Array.from({ length: 16 }, async () => {
    for (;;) {
      const id = newId();
      const { outcome } = await perform('reserve', {
        id,
        amountMicros: randomInt(50),
        ttlMs: randomInt(HOUR_MS, DAY_MS),
        maxOpen: 40,
      });
      if (outcome === 'INSUFFICIENT') await perform('grant', { id: newId(), amountMicros: 500, note: '' });
      const next = randomInt(10);
      if (outcome === 'RESERVED' && next < 6) await perform('settle', id, randomInt(60));
      else if (outcome !== 'RESERVED' || next < 9) await perform('release', id);
    }
  }),
);
