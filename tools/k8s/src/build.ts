import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';

const MODULE = join(import.meta.dirname, '..');
const VERSION = 'v1.36.3';

/** The components say this version of themselves; without it, v0.0.0-master. */
const LINK_FLAGS = [
  '-s -w',
  `-X k8s.io/component-base/version.gitVersion=${VERSION}`,
  '-X k8s.io/component-base/version.gitMajor=1',
  '-X k8s.io/component-base/version.gitMinor=36',
  `-X k8s.io/client-go/pkg/version.gitVersion=${VERSION}`,
].join(' ');

/** Go programs of this module; `cluster` is the whole control plane. */
export type GoProgram = 'lint' | 'cluster';

/**
 * Builds a program with Go, once for each state of its sources. That takes minutes at first, of one core alone, which
 * gives way to everything else.
 * @returns its file
 * @throws Error when Go is missing or fails
 */
export function build(program: GoProgram, env: NodeJS.ProcessEnv): string {
  const folder = join(env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'agent-memory-k8s');
  const file = join(folder, `${program}-${hashOfSources(program)}`);
  if (existsSync(file)) return file;
  mkdirSync(folder, { recursive: true });
  process.stderr.write(`Go builds ${program}; the first time this takes minutes\n`);
  const temporary = `${file}.${process.pid}`;
  const args = ['build', '-p=1', '-mod=readonly', '-trimpath', '-buildvcs=false', '-ldflags', LINK_FLAGS];
  const { status, error } = spawnSync('nice', ['-n', '19', 'go', ...args, '-o', temporary, `./${program}`], {
    cwd: MODULE,
    env: { ...env, CGO_ENABLED: '0' },
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  if (error ?? status !== 0) throw new Error(`Go could not build ${program}; it needs Go 1.26 and its module proxy`);
  renameSync(temporary, file);
  return file;
}

function hashOfSources(program: GoProgram): string {
  const hash = createHash('sha256').update(LINK_FLAGS);
  const sources = readdirSync(join(MODULE, program)).sort();
  for (const file of ['go.mod', 'go.sum', ...sources.map((name) => join(program, name))])
    hash.update(`${file}\0`).update(readFileSync(join(MODULE, file)));
  return hash.digest('hex').slice(0, 16);
}
