import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Command } from 'commander';
import { EXAMPLES } from '../../admin/src/examples.ts';
import { makeProgram } from '../../admin/src/program.ts';
import { adminReference } from '../../admin/src/reference.ts';
import { REPOSITORY } from '../support/stack.ts';
import { commandLine, printed, sentence } from './admin-command.ts';

/** How a shell asks the completion of the script what may follow these words. */
const ASK: Readonly<Record<string, (script: string, words: readonly string[]) => string>> = {
  bash: (script, words) =>
    `. ${script}; COMP_WORDS=(${words.join(' ')}); COMP_CWORD=${words.length - 1}; _agent_admin
    printf '%s\\n' "\${COMPREPLY[@]}"`,
  zsh: (script, words) =>
    `compdef() { : }; . ${script}; compadd() { shift; print -l -- "$@" }; _files() { : }
    words=(${words.join(' ')}); CURRENT=${words.length}; _agent_admin`,
};
const installed = Object.keys(ASK).filter((shell) => spawnSync(shell, ['-c', 'true']).status === 0);

describe('what the admin command line says of itself', () => {
  let written = '';
  const { program } = makeProgram({}, { writeOut: (text) => (written += text) });
  const commands = program.commands.flatMap((noun): [string, Command][] => [
    [noun.name(), noun],
    ...noun.commands.map((verb): [string, Command] => [`${noun.name()} ${verb.name()}`, verb]),
  ]);
  const helpOf = (command: Command): string => {
    written = '';
    command.outputHelp();
    return written;
  };
  const admin = commandLine({ AUTH_ADDRESS: '127.0.0.1:1' });

  it('is docs/admin.md as npm run docs writes it', () => {
    expect(readFileSync(join(REPOSITORY, 'docs/admin.md'), 'utf8')).toBe(adminReference(program));
  });

  it('shows an example of each command with its help', () => {
    const seen: string[] = [];
    for (const [path, command] of commands) {
      const example = EXAMPLES[path];
      if (command.commands.length > 0) {
        expect(helpOf(command)).toMatch(/\nExample:\n {2}npm run admin -- \S/);
        continue;
      }
      seen.push(path);
      expect(helpOf(command)).toContain(`\nExample:\n  npm run admin -- ${example}\n`);
    }
    expect(Object.keys(EXAMPLES).sort()).toEqual(seen.sort());
  });

  it('names bounds and choices in the help', async () => {
    const help = (await printed(admin('audit list --help'))).replace(/\s+/g, ' ');
    expect(help).toMatch(/--page-size <n> [^[]*\[1 to 1000\]/);
    expect(help).toMatch(/--outcome .*choices: "success", "failure", "denied"/);
    expect(help).toMatch(/--since <time> .*\[a date, or an ISO 8601 time with a zone\]/);
  });

  it.each(installed)('completes commands, options and their choices in %s', async (shell) => {
    const folder = mkdtempSync(join(tmpdir(), 'completion-'));
    const script = join(folder, 'script');
    writeFileSync(script, await printed(admin(`completion ${shell}`)));
    const following = (...words: string[]): string[] => {
      const { stdout, stderr } = spawnSync(shell, ['-c', ASK[shell]!(script, ['agent-admin', ...words, "''"])], {
        encoding: 'utf8',
      });
      expect(stderr).toBe('');
      return stdout.split('\n').filter(Boolean);
    };
    expect(following()).toEqual(expect.arrayContaining(['audit', 'doctor', 'token', '--organization']));
    expect(following('--organization', 'acme', 'audit')).toEqual(expect.arrayContaining(['list', 'verify', 'export']));
    expect(following('audit', 'list')).toEqual(expect.arrayContaining(['--action', '--since', '--json']));
    expect(following('audit', 'list', '--action')).toContain('server_token.create');
    expect(following('audit', 'list', '--page-size')).toEqual([]);
    expect(following('organization', 'tier', 'acme')).toContain('enterprise');
    // the name that it defines calls the command line itself
    const called = spawnSync(shell, ['-c', `compdef() { :; }; . ${script}; agent-admin user list`], {
      encoding: 'utf8',
    });
    expect([called.status, called.stderr]).toEqual([
      2,
      expect.stringMatching(/--organization <name-or-id> is required/),
    ]);
    rmSync(folder, { recursive: true });
  });

  it('refuses a shell that it does not know', async () => {
    expect(await sentence(admin('completion fish'), 2)).toMatch(/Allowed choices are bash, zsh/);
  });
});
