import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { RELEASE } from 'platform/core/release.ts';
import { openApiDocument } from '../gateway/src/openapi/document.ts';
import { commandLine, json } from './admin/admin-command.ts';
import { REPOSITORY } from './support/stack.ts';
import { PREVIOUS } from './upgrades/release.ts';

const read = (file: string): string => readFileSync(join(REPOSITORY, file), 'utf8');

interface Manifest {
  name: string;
  version?: string;
  dependencies?: Record<string, string>;
  devDependencies?: Record<string, string>;
}

describe('the number of the release', () => {
  const lock = JSON.parse(read('package-lock.json')) as { version: string; packages: Record<string, Manifest> };
  const workspaces = Object.keys(lock.packages).filter((folder) => !/node_modules|not-installed/.test(folder));
  const manifestOf = (folder: string): Manifest => JSON.parse(read(join(folder, 'package.json'))) as Manifest;
  const names = new Set(workspaces.map((folder) => manifestOf(folder).name));

  it.each(workspaces)(
    'is that of "%s", of what it takes from the others, and of its place in the lock file',
    (folder) => {
      const numbers = [manifestOf(folder), lock.packages[folder]!].flatMap(
        ({ version, dependencies, devDependencies }) => [
          version,
          ...Object.entries({ ...dependencies, ...devDependencies }).flatMap(([name, wanted]) =>
            names.has(name) ? [wanted] : [],
          ),
        ],
      );
      expect(new Set(numbers)).toEqual(new Set([RELEASE]));
    },
  );

  it('is what the programs, the API, the image and the lock file say', async () => {
    expect({
      openApi: openApiDocument([], '').info.version,
      admin: await json(commandLine({})('--json version')),
      image: /^ARG VERSION=(.*)$/m.exec(read('deploy/Dockerfile'))![1],
      lock: lock.version,
    }).toEqual({ openApi: RELEASE, admin: { release: RELEASE }, image: RELEASE, lock: RELEASE });
  });

  it('comes first in the changelog, and then that of the release before, whose programs are kept', () => {
    const numbers = [...read('CHANGELOG.md').matchAll(/^## \[(.*?)\]/gm)].map(([, number]) => number);
    expect(numbers.slice(0, 2)).toEqual([RELEASE, PREVIOUS]);
    const [major, minor] = RELEASE.split('.').map(Number) as [number, number];
    expect(PREVIOUS).toMatch(minor === 0 ? new RegExp(`^${major - 1}\\.`) : `${major}.${minor - 1}.`);
  });
});
