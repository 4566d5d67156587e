import type { Env } from 'platform/core/config.ts';
import { StartError } from 'platform/core/start-error.ts';
import { runStep, onPath, succeeds } from './command.ts';
import { inList, type PrintProgress } from './progress.ts';

/** A program that must be installed on the system. */
export interface SystemProgram {
  name: string;
  /** The Debian package that contains it. */
  package: string;
  isInstalled(env: Env): Promise<boolean>;
}

const program = (name: string, debianPackage: string): SystemProgram => ({
  name,
  package: debianPackage,
  isInstalled: async (env) => onPath(name, env),
});

export const JAVA = program('java', 'default-jre-headless');
export const MAVEN = program('mvn', 'maven');
export const REDIS = program('redis-server', 'redis-server');
/** Simulates a slow disk for a test's server. */
export const STRACE = program('strace', 'strace');
/** Debian's python3 package alone cannot make a virtual environment. */
export const PYTHON: SystemProgram = {
  name: 'python3 with venv',
  package: 'python3-venv',
  isInstalled: (env) => succeeds(['python3', '-c', 'import venv, ensurepip'], env),
};

/**
 * Installs the missing programs if this process is root and has apt-get.
 * @throws StartError that names the programs still missing and their packages
 */
export async function installPackages(
  programs: readonly SystemProgram[],
  env: Env,
  print: PrintProgress,
): Promise<void> {
  const missing = await missingOf(programs, env);
  if (missing.length === 0) return;
  const packages = missing.map((each) => each.package);
  if (process.getuid?.() === 0 && onPath('apt-get', env)) {
    print(`installing ${inList(packages)} (apt-get)`);
    const quiet = { ...env, DEBIAN_FRONTEND: 'noninteractive' };
    await runStep('apt-get update', ['apt-get', 'update', '-qq'], quiet);
    await runStep(
      `apt-get install ${packages.join(' ')}`,
      ['apt-get', 'install', '-y', '-qq', '--no-install-recommends', ...packages],
      quiet,
    );
  }
  const stillMissing = await missingOf(programs, env);
  if (stillMissing.length > 0) throw new StartError(missingSentence(stillMissing));
}

async function missingOf(programs: readonly SystemProgram[], env: Env): Promise<SystemProgram[]> {
  const installed = await Promise.all(programs.map((each) => each.isInstalled(env)));
  return programs.filter((_, i) => !installed[i]);
}

function missingSentence(missing: readonly SystemProgram[]): string {
  const [is, plural] = missing.length === 1 ? ['is', ''] : ['are', 's'];
  const names = inList(missing.map(({ name }) => name));
  return `${names} ${is} missing: install the Debian package${plural} ${inList(missing.map((each) => each.package))}`;
}
