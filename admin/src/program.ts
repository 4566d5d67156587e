import { Command, CommanderError } from 'commander';
import type { Env } from 'platform/core/config.ts';
import { codeOf, ServiceError } from 'platform/core/errors.ts';
import { StartError } from 'platform/core/start-error.ts';
import { agentCommand } from './agent.ts';
import { auditCommand } from './audit.ts';
import { makeContext } from './context.ts';
import { creditsCommand } from './credits.ts';
import { doctorCommand } from './doctor.ts';
import { eventsCommand } from './events.ts';
import { jobCommand } from './job.ts';
import { jwtCommand } from './jwt.ts';
import { keysCommand } from './keys.ts';
import { organizationCommand } from './organization.ts';
import { tokenCommand } from './token.ts';
import { userCommand } from './user.ts';
import { UsageError } from './usage-error.ts';

const COMMANDS = [
  doctorCommand,
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
  const asJson = argv.includes('--json');
  const program = new Command('npm run admin --')
    .description('The admin command line: calls the services by gRPC as a named operator with its own certificate.')
    .option('--json', 'print JSON instead of tables; a failure as JSON on standard error')
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
    .configureOutput(asJson ? { writeErr: () => undefined } : {})
    .exitOverride();
  const context = makeContext(program, env);
  for (const command of COMMANDS) program.addCommand(withSettingsOf(program, command(context)));
  try {
    await program.parseAsync(argv);
  } catch (error) {
    process.exitCode = report(error, asJson);
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

/** Prints the error on standard error, as a sentence or as JSON, and returns the exit code. */
function report(error: unknown, asJson: boolean): number {
  if (error instanceof CommanderError && (error.exitCode === 0 || !asJson))
    return error.exitCode === 0 ? 0 : EXIT_USAGE;
  const isUsage = error instanceof UsageError || error instanceof CommanderError;
  if (!isUsage && !(error instanceof ServiceError) && !(error instanceof StartError)) throw error;
  process.stderr.write(`${asJson ? JSON.stringify(failureOf(error)) : sentenceOf(error)}\n`);
  return isUsage ? EXIT_USAGE : EXIT_FAILED;
}

/** As the REST API shows an error, with the exit code's meaning as `code` where no service has failed. */
function failureOf(error: UsageError | CommanderError | ServiceError | StartError): object {
  if (error instanceof StartError) return { error: error.message, code: 'failed' };
  if (!(error instanceof ServiceError)) return { error: error.message.replace(/^error: /, ''), code: 'usage' };
  const { message, reason, details, facts } = error;
  return { error: message, code: codeOf(reason), ...(details.length > 0 && { details }), ...facts };
}

/** The message, followed by a line for each violation; a single violation that is the message itself is one line. */
function sentenceOf(error: Error): string {
  const faults = error instanceof ServiceError ? error.details.map(({ message }) => message) : [];
  if (faults.length === 1 && faults[0] === error.message) return error.message;
  return [error.message, ...faults.map((fault) => `  ${fault}`)].join('\n');
}
