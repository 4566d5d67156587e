import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { zstdDecompressSync } from 'node:zlib';
import { REPOSITORY } from '../support/stack.ts';

const ARCHIVE = /^release-(.*)\.tar\.zst$/;
/** Packages that runners read: they may look into no folder of packages that lacks one of these. */
const OF_RUNNERS = ['jsonata', 're2js', '@eslint-community', 'quickjs-emscripten-core', '@jitl'];
const archive = readdirSync(import.meta.dirname).find((name) => ARCHIVE.test(name))!;

/** Number of the release before this one, whose programs `npm run keep-release` has put beside this file. */
export const PREVIOUS = ARCHIVE.exec(archive)![1]!;

/**
 * Lays out the previous release below the repository: there its programs find the packages that are installed here,
 * and its own `platform` and `proto` before ours.
 */
export function layOutPrevious(): { root: string; remove(): void } {
  const parent = join(REPOSITORY, '.releases');
  mkdirSync(parent, { recursive: true });
  const root = mkdtempSync(join(parent, `${PREVIOUS}-`));
  execFileSync('tar', ['-x', '-C', root], {
    input: zstdDecompressSync(readFileSync(join(import.meta.dirname, archive))),
  });
  mkdirSync(join(root, 'node_modules'));
  for (const name of ['platform', 'proto']) symlinkSync(join(root, name), join(root, 'node_modules', name));
  for (const name of OF_RUNNERS)
    cpSync(join(REPOSITORY, 'node_modules', name), join(root, 'node_modules', name), { recursive: true });
  symlinkSync(join(REPOSITORY, 'gateway/node_modules'), join(root, 'gateway/node_modules'));
  return { root, remove: () => rmSync(root, { recursive: true, force: true }) };
}
