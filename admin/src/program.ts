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
import { jwtCommand } from './jwt.ts';
import { keysCommand } from './keys.ts';
import { organizationCommand } from './organization.ts';
import { tokenCommand } from './token.ts';
import { userCommand } from './user.ts';
import { UsageError } from './usage-error.ts';

const COMMANDS = [
  organizationCommand,
  userCommand,
  tokenCommand,
  jwtCommand,
  creditsCommand,
  agentCommand,
  auditCommand,
  eventsCommand,
  jobCommand,
  keysCommand,
];
const HELP = `
Exit codes: 0 success, 1 the command failed, 2 wrong usage.
The environment gives the addresses of the services (<NAME>_ADDRESS or <NAME>_LISTEN; default: those of npm start) and
the certificates (DATA_DIR/keys).
In scripts: npm run --silent admin -- --json ...`;
const EXIT_FAILED = 1;
const EXIT_USAGE = 2;

/** Runs one command and sets process.exitCode. @param argv as in process.argv */
export async function runCommand(env: Env, argv: readonly string[]): Promise<void> {
  const program = new Command('npm run admin --')
    .description('The admin command line: calls the services by gRPC as a named operator with its own certificate.')
    .option('--json', 'print JSON instead of tables')
    .option(
      '--organization <name-or-id>',
      'the organization to act on (or ORGANIZATION in the environment)',
      env.ORGANIZATION,
    )
    .option(
      '--as <email>',
      'act as this user of the organization, a security administrator (only for the token commands)',
    )
    .option('--operator <name>', 'name of the operator whose certificate to use (default: your user name)')
    .addHelpText('after', HELP)
    .configureHelp({ showGlobalOptions: true })
    .exitOverride();
  const context = makeContext(program, env);
  for (const command of COMMANDS) program.addCommand(withSettingsOf(program, command(context)));
  try {
    await program.parseAsync(argv);
  } catch (error) {
    process.exitCode = report(error);
  } finally {
    context.close();
  }
}

/** Applies the parent's settings to a command and its subcommands, which Command.addCommand() does not do. */
function withSettingsOf(parent: Command, command: Command): Command {
  command.copyInheritedSettings(parent);
  for (const verb of command.commands) withSettingsOf(command, verb);
  return command;
}

/** Prints the error as one sentence on standard error and returns the exit code. */
function report(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : EXIT_USAGE;
  if (error instanceof UsageError) return printError(error.message, EXIT_USAGE);
  if (error instanceof ServiceError) return printError(sentenceOf(error), EXIT_FAILED);
  if (error instanceof StartError) return printError(error.message, EXIT_FAILED);
  throw error;
}

/** The message, followed by a line for each violation; a single violation that is the message itself is one line. */
function sentenceOf({ message, details }: ServiceError): string {
  const faults = details.map((fault) => fault.message);
  return details.length === 1 && faults[0] === message
    ? message
    : [message, ...faults.map((fault) => `  ${fault}`)].join('\n');
}

function printError(message: string, exitCode: number): number {
  process.stderr.write(`${message}\n`);
  return exitCode;
}
