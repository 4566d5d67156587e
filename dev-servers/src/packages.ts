import type { Env } from 'platform/core/config.ts';
import { StartError } from 'platform/core/start-error.ts';
import { must, onPath, succeeds } from './command.ts';
import { inList, type Say } from './say.ts';

/** What a recipe needs from the system. */
export interface Need {
  what: string;
  /** Debian's name of the package that has it. */
  package: string;
  isThere(env: Env): Promise<boolean>;
}

const program = (name: string, debian: string): Need => ({
  what: name,
  package: debian,
  isThere: async (env) => onPath(name, env),
});

export const JAVA = program('java', 'default-jre-headless');
export const MAVEN = program('mvn', 'maven');
export const REDIS = program('redis-server', 'redis-server');
/** Slows the disk under a server of a test. */
export const STRACE = program('strace', 'strace');
/** Debian's python3 alone cannot make a virtual environment. */
export const PYTHON: Need = {
  what: 'python3 with venv',
  package: 'python3-venv',
  isThere: (env) => succeeds(['python3', '-c', 'import venv, ensurepip'], env),
};

/** Installs what is missing where that may be done (root, apt-get). @throws StartError naming what is missing and its packages */
export async function provide(needs: readonly Need[], env: Env, say: Say): Promise<void> {
  const missing = await missingOf(needs, env);
  if (missing.length === 0) return;
  const packages = missing.map((need) => need.package);
  if (process.getuid?.() === 0 && onPath('apt-get', env)) {
    say(`installing ${inList(packages)} (apt-get)`);
    const quiet = { ...env, DEBIAN_FRONTEND: 'noninteractive' };
    await must('apt-get update', ['apt-get', 'update', '-qq'], quiet);
    await must(
      `apt-get install ${packages.join(' ')}`,
      ['apt-get', 'install', '-y', '-qq', '--no-install-recommends', ...packages],
      quiet,
    );
  }
  const still = await missingOf(needs, env);
  if (still.length > 0) throw new StartError(sentence(still));
}

async function missingOf(needs: readonly Need[], env: Env): Promise<Need[]> {
  const there = await Promise.all(needs.map((need) => need.isThere(env)));
  return needs.filter((_, i) => !there[i]);
}

function sentence(missing: readonly Need[]): string {
  const [is, plural] = missing.length === 1 ? ['is', ''] : ['are', 's'];
  return `${inList(missing.map(({ what }) => what))} ${is} missing: install the Debian package${plural} ${inList(missing.map((need) => need.package))}`;
}
