import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { constants, zstdCompressSync } from 'node:zlib';

// `npm run keep-release`: keeps the programs of this release for the tests of the next one, in place of the release
// before. CONTRIBUTING.md says when.

const REPOSITORY = join(import.meta.dirname, '../..');
/** What runs. proto/gen is as `npm ci` made it, so that the release keeps the generator that it was built with. */
const PROGRAMS = ['platform/src', 'services/*/src', 'gateway/src', 'gateway/config', 'launcher/src', 'admin/src'];
const WHAT_THEY_NEED = ['proto', 'examples', 'package.json', '*/package.json', 'services/*/package.json'];
/** The same files make the same archive on every machine: settings.txt names the folder of the repository. */
const REPRODUCIBLE = [
  ...['--sort=name', '--mtime=@0', '--owner=0', '--group=0', '--numeric-owner', '--mode=go-w'],
  '--exclude=proto/gen/settings.txt',
];

const inRepository = { cwd: REPOSITORY, maxBuffer: 1 << 28 };
const git = (...args: readonly string[]): string =>
  execFileSync('git', args, { ...inRepository, encoding: 'utf8' }).trim();

const changed = git('status', '--porcelain');
if (changed !== '') throw new Error(`Commit these first, or they would be in no release:\n${changed}`);
const { version } = JSON.parse(readFileSync(join(REPOSITORY, 'package.json'), 'utf8')) as { version: string };
const sources = git('ls-files', ...[...PROGRAMS, ...WHAT_THEY_NEED].map((pattern) => `:(glob)${pattern}/**`)).split(
  '\n',
);
const manifests = git('ls-files', ...WHAT_THEY_NEED.map((pattern) => `:(glob)${pattern}`)).split('\n');
const tar = execFileSync(
  'tar',
  [...REPRODUCIBLE, '-c', ...new Set([...manifests, ...sources, 'proto/gen'])],
  inRepository,
);
const archive = zstdCompressSync(tar, {
  params: {
    [constants.ZSTD_c_compressionLevel]: 19,
    [constants.ZSTD_c_enableLongDistanceMatching]: 1,
  },
});
for (const name of readdirSync(import.meta.dirname))
  if (/^release-.*\.tar\.zst$/.test(name)) rmSync(join(import.meta.dirname, name));
const file = `release-${version}.tar.zst`;
writeFileSync(join(import.meta.dirname, file), archive);
process.stdout.write(`test/upgrades/${file}: ${archive.length} bytes, of ${git('rev-parse', 'HEAD')}\n`);
