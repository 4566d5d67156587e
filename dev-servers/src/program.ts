import { resolve } from 'node:path';
import { Command, CommanderError } from 'commander';
import type { Env } from 'platform/core/config.ts';
import { StartError } from 'platform/core/start-error.ts';
import { composeUp } from './docker.ts';
import { down } from './down.ts';
import { ENGINES_FOLDER } from './server-spec.ts';
import { say } from './say.ts';
import { status } from './status.ts';
import { up } from './up.ts';

const HELP = `
Everything is kept in .engines/ (or ENGINES_FOLDER): installations, data, logs, state.json.
Exit codes: 0 done (status: all up), 1 refused or failed (status: not all up), 2 wrong usage.
Into a shell: eval "$(npm run -s engines -- up)"`;
const EXIT_FAILED = 1;
const EXIT_USAGE = 2;

/** Runs one command and sets the exit code. @param argv as in process.argv */
export async function runCommand(env: Env, argv: readonly string[]): Promise<void> {
  const engines = env.ENGINES_FOLDER ? resolve(env.ENGINES_FOLDER) : ENGINES_FOLDER;
  const program = new Command('npm run engines --')
    .description('Real servers for the services to use: MongoDB (SecantusDB stands in for mongod), Redis, Kafka.')
    .addHelpText('after', HELP)
    .exitOverride();
  program
    .command('up')
    .description(
      'install what is missing, start what does not run, wait until all answer, print the settings to export',
    )
    .option('--docker', 'by deploy/compose.yaml on a Docker engine')
    .action(
      async ({ docker }: { docker?: true }) =>
        void process.stdout.write(await (docker ? composeUp : up)(engines, env, say)),
    );
  program
    .command('down')
    .description('end what up started')
    .option('--purge', 'delete the data, too')
    .action(({ purge = false }: { purge?: boolean }) => down(engines, env, say, { purge }));
  program
    .command('status')
    .description('what runs, where')
    .action(async () => {
      const { text, allUp } = await status(engines, env);
      process.stdout.write(text);
      if (!allUp) process.exitCode = EXIT_FAILED;
    });
  try {
    await program.parseAsync(argv);
  } catch (error) {
    process.exitCode = report(error);
  }
}

/** One sentence on standard error; the exit code. */
function report(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : EXIT_USAGE;
  if (!(error instanceof StartError)) throw error;
  say(error.message);
  return EXIT_FAILED;
}
