import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { onPath } from '../../dev-servers/src/command.ts';
import { REPOSITORY } from './stack.ts';

const FOLDER = join(REPOSITORY, '.engines/promtool');

/** The file of promtool: the one on the path, or that of Debian's package, which is unpacked and not installed. */
function promtoolFile(): string {
  if (onPath('promtool', process.env)) return 'promtool';
  const file = join(FOLDER, 'usr/bin/promtool');
  if (existsSync(file)) return file;
  const temporary = `${FOLDER}.${process.pid}`;
  mkdirSync(temporary, { recursive: true });
  execFileSync('apt-get', ['download', '-qq', 'prometheus'], { cwd: temporary, stdio: 'pipe' });
  const [archive] = readdirSync(temporary).filter((name) => name.endsWith('.deb'));
  execFileSync('dpkg-deb', ['-x', archive!, temporary], { cwd: temporary });
  rmSync(FOLDER, { recursive: true, force: true });
  renameSync(temporary, FOLDER);
  return file;
}

export function promtool(args: readonly string[], input = ''): { succeeded: boolean; said: string } {
  const { status, stdout, stderr } = spawnSync(promtoolFile(), args, { input, encoding: 'utf8' });
  return { succeeded: status === 0, said: `${stdout}${stderr}` };
}
