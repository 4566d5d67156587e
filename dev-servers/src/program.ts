import { resolve } from 'node:path';
import { Command, CommanderError } from 'commander';
import type { Env } from 'platform/core/config.ts';
import { StartError } from 'platform/core/start-error.ts';
import { composeUp } from './docker.ts';
import { down } from './down.ts';
import { ENGINES_FOLDER } from './server-spec.ts';
import { printProgress } from './progress.ts';
import { status } from './status.ts';
import { up } from './up.ts';

const HELP = `
Installations, data, logs and state.json are kept in .engines/ (or ENGINES_FOLDER).
Exit codes: 0 success (status: all servers answer), 1 failure (status: not all servers answer), 2 wrong usage.
To set the URLs in a shell: eval "$(npm run -s engines -- up)"`;
const EXIT_FAILED = 1;
const EXIT_USAGE = 2;

/** Runs one command and sets process.exitCode. @param argv as in process.argv */
export async function runCommand(env: Env, argv: readonly string[]): Promise<void> {
  const engines = env.ENGINES_FOLDER ? resolve(env.ENGINES_FOLDER) : ENGINES_FOLDER;
  const program = new Command('npm run engines --')
    .description('Real servers for development and tests: MongoDB (SecantusDB in place of mongod), Redis and Kafka.')
    .addHelpText('after', HELP)
    .exitOverride();
  program
    .command('up')
    .description('install and start the servers that do not run, wait until all answer, print the settings to export')
    .option('--docker', 'start deploy/compose.yaml with Docker instead')
    .action(
      async ({ docker }: { docker?: true }) =>
        void process.stdout.write(await (docker ? composeUp : up)(engines, env, printProgress)),
    );
  program
    .command('down')
    .description('stop the servers that up started')
    .option('--purge', 'also delete their data')
    .action(({ purge = false }: { purge?: boolean }) => down(engines, env, printProgress, { purge }));
  program
    .command('status')
    .description('show which servers run, and where')
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

/** Prints the error as one sentence on standard error and returns the exit code. */
function report(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : EXIT_USAGE;
  if (!(error instanceof StartError)) throw error;
  printProgress(error.message);
  return EXIT_FAILED;
}
