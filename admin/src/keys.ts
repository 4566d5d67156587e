import { Command } from 'commander';
import { createKeys, finishRotation, revokeOperator, rotateKeys } from 'platform/rpc/keys.ts';
import { PROCESSES } from 'platform/core/processes.ts';
import type { Context } from './context.ts';
import { retireMasterCommand, rotateMasterCommand } from './master-key.ts';
import { publishKeys } from './publish-keys.ts';

export function keysCommand(context: Context): Command {
  const command = new Command('keys').description(
    'the certificates by which processes and operators authenticate each other, and the master key',
  );
  const names = (): string[] => [...Object.keys(PROCESSES), context.operatorName()];
  command
    .command('create')
    .description(
      'make the missing certificates of all processes and of this operator in DATA_DIR/keys, and renew those that end ' +
        'within 30 days (npm start also does this)',
    )
    .action(async () => {
      const folder = context.keyFolder();
      const { issued, missedMasterKey, removed } = await createKeys(folder, names());
      const made = [...issued, ...(missedMasterKey ? ['master-key'] : [])];
      context.printRecord(
        { folder, operator: context.operatorName(), issued, missedMasterKey, removed },
        { folder, operator: context.operatorName(), made: made.join(', ') || 'nothing was missing' },
      );
      if (missedMasterKey) context.note(NEW_MASTER_KEY);
      if (removed.length > 0) context.note(replacedNote(removed));
    });
  command
    .command('publish')
    .description(
      'in a pod of Kubernetes: what "keys create" does, for certificates that are secrets of the namespace, one for each ' +
        'process, where it mounts them',
    )
    .action(async () => {
      const names = Object.keys(PROCESSES);
      const published = await publishKeys(context.keyFolder(), names, context.operatorName(), context.clusterSecrets());
      context.printRecord(published, {
        issued: published.issued.join(', ') || 'nothing was missing',
        written: published.written.join(', ') || 'nothing had changed',
      });
    });
  command
    .command('rotate')
    .description(
      'renew the certificates of all processes and operators; those of before are accepted, too, until the rotation ' +
        'is finished. Running processes need no restart',
    )
    .option('--finish', 'end the rotation: what was issued before it is refused from now on')
    .action(async ({ finish }: { finish?: boolean }) => {
      const folder = context.keyFolder();
      if (finish) {
        await finishRotation(folder);
        return context.printRecord({ folder, finished: true });
      }
      const issued = await rotateKeys(folder, names());
      context.printRecord({ folder, issued }, { folder, issued: issued.join(', ') });
    });
  command
    .command('revoke')
    .description('refuse an operator from its next call on; the name cannot be used again')
    .argument('<operator>', 'its name without "operator:"')
    .action((operator: string) => {
      const folder = context.keyFolder();
      const revoked = context.operatorNamed(operator);
      const known = revokeOperator(folder, revoked);
      context.printRecord({ folder, revoked });
      if (!known) context.note(`There was no certificate of ${revoked} in this folder.`);
    });
  command.addCommand(rotateMasterCommand(context)).addCommand(retireMasterCommand(context));
  return command;
}

const NEW_MASTER_KEY =
  'There was no master key, so a new one was made. What an earlier one has sealed cannot be opened without that one.';

/** One line about the files that a data folder of the release before has. */
export const replacedNote = (removed: readonly string[]): string =>
  `Certificates have replaced the signing keys of the release before; ${removed.length} of its files were removed.`;
