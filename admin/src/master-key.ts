import { Command } from 'commander';
import { DiagnosisServiceService } from 'proto/platform/v1/diagnosis.ts';
import { isoTime } from 'platform/core/clock.ts';
import type { ProcessName } from 'platform/core/processes.ts';
import { StartError } from 'platform/core/start-error.ts';
import { planRetirement, rotateMasterKey, type Retirement } from 'platform/rpc/master-keys.ts';
import type { Context } from './context.ts';
import { seconds } from './usage-error.ts';

/** The services that seal. */
const SEALING: readonly ProcessName[] = ['auth', 'agents'];
/** As long as a key of JWTs is published before it signs. */
const OVERLAP_S = 600;

export function rotateMasterCommand(context: Context): Command {
  return new Command('rotate-master')
    .description(
      'add a key that seals stored secrets to the file of the master key. It seals after the overlap, by which the ' +
        'file must be at every process; then the job reseal seals anew what older keys have sealed',
    )
    .option('--overlap <time>', 'how long the new key only opens (default: 10m)', seconds(30))
    .action(({ overlap = OVERLAP_S }: { overlap?: number }) => {
      const file = context.masterKeyFile();
      const [added, ...kept] = rotateMasterKey(file, overlap * 1_000);
      const record = { file, added: added!.id, sealsFrom: isoTime(added!.sealsFrom), kept: kept.map(({ id }) => id) };
      context.printRecord(record, { ...record, kept: record.kept.join(', ') });
    });
}

export function retireMasterCommand(context: Context): Command {
  return new Command('retire-master')
    .description(
      'remove all keys but the newest from the file of the master key. Refused unless every replica seals under the ' +
        'newest and nothing needs an older one. Backups of the databases still need them',
    )
    .action(async () => {
      const file = context.masterKeyFile();
      const retirement = planRetirement(file);
      if (retirement.older.length > 0) {
        await requireUnused(context, retirement);
        retirement.finish();
      }
      const record = { file, newest: retirement.newest.id, retired: retirement.older.map(({ id }) => id) };
      context.printRecord(record, { ...record, retired: record.retired.join(', ') || 'there was no older key' });
    });
}

/** @throws StartError, ServiceError unless every replica of every service that seals can do without the older keys */
async function requireUnused(context: Context, { newest }: Retirement): Promise<void> {
  for (const service of SEALING)
    for (const replica of await context.clients(DiagnosisServiceService, service)) {
      const { findings } = await replica.diagnose({}, context.asOperator());
      const finding = findings.find(({ masterKey }) => masterKey);
      if (!finding) throw new StartError(`A replica of ${service} does not say under which master key it seals`);
      const { masterKey, fine, sentence } = finding;
      if (masterKey !== newest.id)
        throw new StartError(
          `A replica of ${service} seals under ${masterKey} and not under ${newest.id}: has it the same file?`,
        );
      // What opens nowhere is a reason, too: perhaps only this file holds the key for it.
      if (!fine) throw new StartError(`A replica of ${service} cannot do without the older keys: ${sentence}`);
    }
}
