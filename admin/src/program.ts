import { Command, CommanderError } from 'commander';
import type { Env } from 'platform/core/config.ts';
import { ServiceError } from 'platform/core/errors.ts';
import { StartError } from 'platform/core/start-error.ts';
import { agentCommand } from './agent.ts';
import { auditCommand } from './audit.ts';
import { makeContext } from './context.ts';
import { creditsCommand } from './credits.ts';
import { eventsCommand } from './events.ts';
import { jobCommand } from './job.ts';
import { keysCommand } from './keys.ts';
import { organizationCommand } from './organization.ts';
import { tokenCommand } from './token.ts';
import { userCommand } from './user.ts';
import { UsageError } from './usage-error.ts';

const COMMANDS = [
  organizationCommand,
  userCommand,
  tokenCommand,
  creditsCommand,
  agentCommand,
  auditCommand,
  eventsCommand,
  jobCommand,
  keysCommand,
];
const HELP = `
Exit codes: 0 done, 1 refused or failed, 2 wrong usage.
Services are found by <NAME>_ADDRESS or <NAME>_LISTEN (default: where npm start puts them), keys in DATA_DIR/keys.
For another program: npm run --silent admin -- --json ...`;
const EXIT_FAILED = 1;
const EXIT_USAGE = 2;

/** Runs one command and sets the exit code. @param argv as in process.argv */
export async function runCommand(env: Env, argv: readonly string[]): Promise<void> {
  const program = new Command('npm run admin --')
    .description('The admin command line: speaks gRPC to the services as a named operator, with a key of its own.')
    .option('--json', 'print JSON instead of tables')
    .option(
      '--organization <name-or-id>',
      'organization acted on (or ORGANIZATION in the environment)',
      env.ORGANIZATION,
    )
    .option(
      '--as <email>',
      'act as this user of the organization (for server tokens, which belong to a security administrator)',
    )
    .option('--operator <name>', 'whose operator key is used (default: your user name)')
    .addHelpText('after', HELP)
    .configureHelp({ showGlobalOptions: true })
    .exitOverride();
  const context = makeContext(program, env);
  for (const command of COMMANDS) program.addCommand(alike(command(context), program));
  try {
    await program.parseAsync(argv);
  } catch (error) {
    process.exitCode = report(error);
  } finally {
    context.close();
  }
}

/** Commands that are added, unlike those made in place, take over no settings. */
function alike(command: Command, parent: Command): Command {
  command.copyInheritedSettings(parent);
  for (const verb of command.commands) alike(verb, command);
  return command;
}

/** One sentence on standard error; the exit code. */
function report(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : EXIT_USAGE;
  if (error instanceof UsageError) return say(error.message, EXIT_USAGE);
  if (error instanceof ServiceError) return say(sentenceOf(error), EXIT_FAILED);
  if (error instanceof StartError) return say(error.message, EXIT_FAILED);
  throw error;
}

/** The message, and what is wrong where; a single fault in one line. */
function sentenceOf({ message, details }: ServiceError): string {
  const faults = details.map((fault) => `${fault.path.slice(1).replaceAll('/', '.')}: ${fault.message}`);
  return details.length === 1 && details[0]?.message === message
    ? (faults[0] as string)
    : [message, ...faults.map((fault) => `  ${fault}`)].join('\n');
}

function say(message: string, exitCode: number): number {
  process.stderr.write(`${message}\n`);
  return exitCode;
}
