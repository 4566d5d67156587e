import { Command, CommanderError, Help, type Option, type OutputConfiguration } from 'commander';
import type { Env } from 'platform/core/config.ts';
import { codeOf, ServiceError } from 'platform/core/errors.ts';
import { StartError } from 'platform/core/start-error.ts';
import { agentCommand } from './agent.ts';
import { auditCommand } from './audit.ts';
import { backupCommand } from './backup.ts';
import { bootstrapCommand } from './bootstrap.ts';
import { completionCommand } from './completion.ts';
import { makeContext, type Context } from './context.ts';
import { creditsCommand } from './credits.ts';
import { doctorCommand } from './doctor.ts';
import { eventsCommand } from './events.ts';
import { executionCommand } from './execution.ts';
import { EXAMPLES } from './examples.ts';
import { jobCommand } from './job.ts';
import { jwtCommand } from './jwt.ts';
import { keysCommand } from './keys.ts';
import { organizationCommand } from './organization.ts';
import { jsonOf, textOf } from './output.ts';
import { restoreCommand } from './restore.ts';
import { secretCommand } from './secret.ts';
import { tokenCommand } from './token.ts';
import { userCommand } from './user.ts';
import { UsageError, type Parser } from './usage-error.ts';
import { versionCommand } from './version.ts';

const COMMANDS = [
  doctorCommand,
  bootstrapCommand,
  organizationCommand,
  userCommand,
  tokenCommand,
  jwtCommand,
  creditsCommand,
  agentCommand,
  executionCommand,
  secretCommand,
  auditCommand,
  eventsCommand,
  jobCommand,
  keysCommand,
  backupCommand,
  restoreCommand,
  completionCommand,
  versionCommand,
];
const HELP = `
Exit codes: 0 success, 1 the command failed or doctor or audit verify found something wrong, 2 wrong usage.
The environment gives the addresses of the services (<NAME>_ADDRESS or <NAME>_LISTEN; default: those of npm start) and
the certificate of the operator (TLS_CERT_FILE, TLS_KEY_FILE and TLS_CA_FILE; default: DATA_DIR/keys).
In scripts: npm run --silent admin -- --json ...

Example:
  npm run admin -- doctor`;
const EXIT_FAILED = 1;
const EXIT_USAGE = 2;

/** Runs one command and sets process.exitCode. @param argv as in process.argv */
export async function runCommand(env: Env, argv: readonly string[]): Promise<void> {
  const asJson = argv.includes('--json') && !argv.slice(0, argv.indexOf('--json')).includes('--');
  const { program, context } = makeProgram(env, asJson ? { writeErr: () => undefined } : {});
  try {
    requireText(argv);
    requireValues(program, argv);
    await program.parseAsync(argv);
  } catch (error) {
    process.exitCode = report(error, asJson);
  } finally {
    context.close();
  }
}

/** All commands, and what they use; whoever makes them closes the context. */
export function makeProgram(env: Env, output: OutputConfiguration): { program: Command; context: Context } {
  const program = new Command('npm run admin --')
    .description('The admin command line: calls the services by gRPC as a named operator with its own certificate.')
    .option('--json', 'print JSON instead of tables; a failure as JSON on standard error')
    .option('--wide', 'print whole ids and texts, also where the terminal is narrower')
    .option(
      '--organization <name-or-id>',
      'the organization to act on (or ORGANIZATION in the environment)',
      env.ORGANIZATION,
    )
    .option(
      '--as <email>',
      'act as this user of the organization (only for agent run, and as a security administrator for the token commands)',
    )
    .option('--operator <name>', 'name of the operator whose certificate to use (default: your user name)')
    .addHelpText('after', HELP)
    .configureHelp({ showGlobalOptions: true, optionDescription })
    .configureOutput(output)
    .exitOverride();
  const context = makeContext(program, env);
  for (const command of COMMANDS) program.addCommand(withSettingsOf(program, command(context)));
  return { program, context };
}

/** Applies what every command has to a command and its subcommands: the parent's settings, and its example. */
function withSettingsOf(parent: Command, command: Command, path = command.name()): Command {
  command.copyInheritedSettings(parent);
  for (const verb of command.commands) withSettingsOf(command, verb, `${path} ${verb.name()}`);
  return command.addHelpText('after', `\nExample:\n  npm run admin -- ${exampleOf(path)}`);
}

function exampleOf(path: string): string {
  const own = Object.keys(EXAMPLES).find((each) => each === path || each.startsWith(`${path} `));
  if (own === undefined) throw new Error(`${path} has no example`);
  return EXAMPLES[own] as string;
}

/** With the values that the option takes. */
function optionDescription(this: Help, option: Option): string {
  const { form } = (option.parseArg ?? {}) as Partial<Parser<unknown>>;
  const text = Help.prototype.optionDescription.call(this, option).replace(/ \(default: (""|\[\])\)$/, '');
  return form === undefined ? text : `${text} [${form}]`;
}

/**
 * Node hands over U+FFFD for bytes that are not UTF-8.
 * @throws UsageError
 */
function requireText(argv: readonly string[]): void {
  const faulty = argv.find((word) => word.includes('\ufffd'));
  if (faulty !== undefined)
    throw new UsageError(`${faulty} has bytes that are not UTF-8, or U+FFFD, which in JSON can be written as \\ufffd`);
}

/**
 * Commander takes the next word as the value of an option, whatever it is.
 * @throws UsageError for a value that looks like an option
 */
function requireValues(program: Command, argv: readonly string[]): void {
  const all = (command: Command): Command[] => [command, ...command.commands.flatMap(all)];
  const withValue = new Set(
    all(program).flatMap(({ options }) => options.flatMap((one) => (one.required ? one.long : []))),
  );
  const end = argv.indexOf('--');
  for (const [index, word] of (end === -1 ? argv : argv.slice(0, end)).entries())
    if (withValue.has(word) && argv[index + 1]?.startsWith('--'))
      throw new UsageError(`${word} needs a value; write ${word}=${argv[index + 1]} if that is the value`);
}

/** Prints the error on standard error, as a sentence or as JSON, and returns the exit code. */
function report(error: unknown, asJson: boolean): number {
  if (error instanceof CommanderError && (error.exitCode === 0 || !asJson))
    return error.exitCode === 0 ? 0 : EXIT_USAGE;
  const isUsage = error instanceof UsageError || error instanceof CommanderError;
  if (!isUsage && !(error instanceof ServiceError) && !(error instanceof StartError)) throw error;
  process.stderr.write(`${asJson ? jsonOf(failureOf(error)) : textOf(sentenceOf(error))}\n`);
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
