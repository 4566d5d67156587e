import { join } from 'node:path';
import { Argument, Command, type Option } from 'commander';

const MAIN = join(import.meta.dirname, 'main.ts');
/** The word by which people call the command line once a completion script has defined it. */
export const SHORT_NAME = 'agent-admin';

const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

/** Every command below this one, itself included: its words (" audit list") and itself. */
function commandsOf(command: Command, words = ''): [words: string, command: Command][] {
  return [[words, command], ...command.commands.flatMap((each) => commandsOf(each, `${words} ${each.name()}`))];
}

/** What may follow the words of a command: its subcommands, the choices of its arguments, its options. */
function nextWords(program: Command, command: Command): string[] {
  const choices = command.registeredArguments.flatMap(({ argChoices }) => argChoices ?? []);
  const options = [...command.options, ...(command === program ? [] : program.options)];
  return [
    ...command.commands.map((each) => each.name()),
    ...choices,
    ...options.flatMap(({ long }) => long ?? []),
    '--help',
  ];
}

const takesValue = ({ required, optional }: Option): boolean => required || optional;

/** The `case` branches of a shell: what follows each command, and each option that takes a value. */
function branches(program: Command): { next: string[]; values: string[]; known: string[] } {
  const commands = commandsOf(program);
  const branch = (words: string, following: readonly string[]): string =>
    `    ${quoted(words)}) following=${quoted(following.join(' '))} ;;`;
  return {
    known: commands.slice(1).map(([words]) => quoted(words)),
    next: commands.map(([words, command]) => branch(words, nextWords(program, command))),
    values: commands.flatMap(([words, command]) =>
      [...command.options, ...(command === program ? [] : program.options)]
        .filter(takesValue)
        .map((option) => branch(`${words} ${option.long}`, option.argChoices ?? [])),
    ),
  };
}

/** The lines that both shells understand: they set `following` by the words before the one that is completed. */
function body(program: Command, wordsBefore: string): string {
  const { known, next, values } = branches(program);
  return `  local at='' word='' following=''
  for word in ${wordsBefore}; do
    case "$at $word" in
    ${known.join('|')}) at="$at $word" ;;
    esac
  done
  case "$at" in
${next.join('\n')}
  esac
  case "$at $word" in
${values.join('\n')}
  esac`;
}

const SCRIPTS: Readonly<Record<string, (program: Command) => string>> = {
  bash: (program) => `_agent_admin() {
${body(program, `"\${COMP_WORDS[@]:1:COMP_CWORD-1}"`)}
  COMPREPLY=($(compgen -W "$following" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _agent_admin ${SHORT_NAME}`,
  zsh: (program) => `(( $+functions[compdef] )) || { autoload -Uz compinit && compinit; }
_agent_admin() {
${body(program, `"\${(@)words[2,CURRENT-1]}"`)}
  if [[ -n $following ]]; then compadd -- \${=following}; else _files; fi
}
compdef _agent_admin ${SHORT_NAME}`,
};

export function completionCommand(): Command {
  const command = new Command('completion');
  return command
    .description(`print a script that defines ${SHORT_NAME}, the short name of this command line, with completion`)
    .addArgument(new Argument('<shell>', 'the shell that reads the script').choices(Object.keys(SCRIPTS)))
    .action((shell: string) => {
      const script = SCRIPTS[shell]!(command.parent as Command);
      const run = `${quoted(process.execPath)} ${quoted(MAIN)}`;
      process.stdout.write(`${SHORT_NAME}() { ${run} "$@"; }\n${script}\n`);
    });
}
