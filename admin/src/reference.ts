import { Help, type Command } from 'commander';
import { EXAMPLES } from './examples.ts';

const HEAD = `# The admin command line

\`npm run admin -- <command>\` calls the services over gRPC as a named operator with a certificate of its own. The services must
run, but for \`keys\`, \`backup\` and \`restore\`; the environment says where (\`<NAME>_ADDRESS\` or \`<NAME>_LISTEN\`) and where
the certificates are (\`DATA_DIR\`, or \`TLS_CERT_FILE\`, \`TLS_KEY_FILE\` and \`TLS_CA_FILE\`). This page is made from the
commands: \`npm run docs\`.

- Exit codes: 0 success, 1 the command failed or \`doctor\` or \`audit verify\` found something wrong, 2 wrong usage.
- In scripts: \`npm run --silent admin -- --json ...\` prints JSON, and a failure as JSON with its \`code\` on standard error.
- A table has one line a row, cut to the width of the terminal: \`--wide\` prints whole ids and texts, and so does a pipe.
- Completion: \`eval "$(npm run --silent admin -- completion bash)"\` (or \`zsh\`) in the profile of your shell defines the
  short name \`agent-admin\`, with completion of commands, options and choices.

Options of every command:

| Option | |
|---|---|
`;

/** The reference of the command line as Markdown, from its commands as `makeProgram` gives them. */
export function adminReference(program: Command): string {
  const rows = optionsOf(program).map(([flags, text]) => `| \`${flags}\` | ${text} |\n`);
  return HEAD + rows.join('') + program.commands.map((command) => sectionOf(command, 2, '')).join('');
}

/** A heading for a command, what it says of itself, and the same of the commands below it. */
function sectionOf(command: Command, level: number, parents: string): string {
  const path = `${parents}${command.name()}`;
  const example = EXAMPLES[path];
  const title = level === 2 ? path : `\`${parents}${new Help().subcommandTerm(command).replace(' [options]', '')}\``;
  const options = optionsOf(command).map(([flags, text]) => `- \`${flags}\`: ${text}\n`);
  return [
    `\n${'#'.repeat(level)} ${title}\n\n${sentenceOf(command.description())}\n`,
    example === undefined ? '' : `\n\`\`\`sh\nnpm run admin -- ${example}\n\`\`\`\n`,
    options.length === 0 ? '' : `\n${options.join('')}`,
    ...command.commands.map((verb) => sectionOf(verb, level + 1, `${path} `)),
  ].join('');
}

const sentenceOf = (description: string): string =>
  `${description.charAt(0).toUpperCase()}${asText(description.slice(1))}.`;

/** Markdown takes words in angle brackets for HTML. */
const asText = (text: string): string => text.replaceAll('<', '\\<');

/** The flags of each option, and its description as `--help` shows it. */
function optionsOf(command: Command): [string, string][] {
  const help = command.createHelp();
  return help
    .visibleOptions(command)
    .filter((option) => option.long !== '--help')
    .map((option) => [help.optionTerm(option), asText(help.optionDescription(option))]);
}
