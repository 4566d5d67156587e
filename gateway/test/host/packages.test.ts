import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, realpathSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';

const ROOT = join(import.meta.dirname, '../../..');
const HOST = 'node_modules/express-gateway';
const STAND_IN = 'gateway/not-installed';

interface LockedPackage {
  link?: boolean;
  resolved?: string;
  dependencies?: Record<string, string>;
  optionalDependencies?: Record<string, string>;
}
const { packages } = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8')) as {
  packages: Record<string, LockedPackage>;
};
const loaded = new Set(
  JSON.parse(
    execFileSync(process.execPath, [join(import.meta.dirname, 'loaded-packages.ts')], {
      encoding: 'utf8',
      env: { ...process.env, NODE_OPTIONS: '' },
    }),
  ) as string[],
);

/** The folder of the package that `from` finds by this name, as Node and npm look for it. */
function folderOf(from: string, name: string): string {
  const candidate = `${from}${from === '' ? '' : '/'}node_modules/${name}`;
  return packages[candidate]
    ? candidate
    : folderOf(from.slice(0, Math.max(0, from.lastIndexOf('/node_modules/'))), name);
}
const isStandIn = (folder: string): boolean => packages[folder]!.resolved === STAND_IN;
const declaredBy = (folder: string): string[] =>
  Object.keys({ ...packages[folder]!.dependencies, ...packages[folder]!.optionalDependencies }).map((name) =>
    folderOf(folder, name),
  );

describe('what express-gateway declares', () => {
  it('is loaded, or not installed', () => {
    // chalk loads it
    const declared = declaredBy(HOST).filter((folder) => !folder.endsWith('/color-convert'));
    expect(declared.filter((folder) => loaded.has(folder) === isStandIn(folder))).toEqual([]);
    expect(declared.filter(isStandIn)).toHaveLength(30);
  });

  it('brings only these packages that are not loaded: those that load them do so in browsers or for what we do not use', () => {
    const installed = new Set<string>();
    const visit = (folder: string): void => {
      if (installed.has(folder) || isStandIn(folder)) return;
      installed.add(folder);
      for (const declared of declaredBy(folder)) visit(declared);
    };
    visit(HOST);
    const names = [...installed]
      .filter((folder) => !loaded.has(folder))
      .map((folder) => folder.split('node_modules/').at(-1));
    expect([...new Set(names)].sort()).toEqual([
      '@colors/colors',
      '@types/triple-beam',
      'argparse',
      'base64-js',
      'buffer',
      'color',
      'color-convert',
      'color-name',
      'color-string',
      'component-emitter',
      'fsevents',
      'ieee754',
      'ms',
      'punycode',
      'sprintf-js',
      'string_decoder',
      'text-hex',
    ]);
  });
});

describe('a package that is not installed', () => {
  const standIns = Object.keys(packages).filter(isStandIn);

  it('is found by express-gateway alone', () => {
    expect(standIns.filter((folder) => !folder.startsWith(`${HOST}/node_modules/`))).toEqual([]);
    expect(standIns.map((folder) => realpathSync(join(ROOT, folder)))).toEqual(
      standIns.map(() => join(ROOT, STAND_IN)),
    );
  });

  it('says which file loads it, and what it stands for', () => {
    const file = join(ROOT, HOST, 'lib/policies/cors/cors.js');
    expect(existsSync(file)).toBe(true);
    const load = () =>
      execFileSync(process.execPath, ['-e', `require(${JSON.stringify(file)})`], { encoding: 'utf8', stdio: 'pipe' });
    expect(load).toThrow(
      `${file} loads gateway/not-installed, which stands for packages that express-gateway declares and that the ` +
        'gateway never loads (overrides in package.json)',
    );
  });

  it('is not what another package gets by its name', () => {
    const fromGateway = createRequire(join(ROOT, 'gateway/src/main.ts'));
    for (const name of ['ejs', 'find-up', 'yeoman-generator'])
      expect(() => fromGateway.resolve(name)).toThrow(/Cannot find module/);
  });
});
