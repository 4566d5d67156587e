import { execFileSync } from 'node:child_process';
import {
  copyFileSync,
  cpSync,
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readlinkSync,
  rmSync,
  symlinkSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

/** Made by `npm ci`, and in no commit. */
const GENERATED = 'proto/gen';

/** Copies the working tree, with what is not committed yet and with installed packages, into a temporary folder. */
export function copyTree(root: string): Disposable & { path: string } {
  const path = mkdtempSync(join(tmpdir(), 'mutants-'));
  const listed = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], { cwd: root });
  const files = listed.toString().split('\0').slice(0, -1);
  for (const file of [...files, GENERATED])
    if (existsSync(join(root, file))) cpSync(join(root, file), join(path, file), { recursive: true });
  for (const manifest of files.filter((file) => /(^|\/)package\.json$/.test(file))) {
    const packages = join(dirname(manifest), 'node_modules');
    if (existsSync(join(root, packages))) linkFolder(join(root, packages), join(path, packages));
  }
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) };
}

/** Links to our own workspaces are relative, so those of the copy lead into the copy. */
function linkFolder(from: string, to: string): void {
  mkdirSync(to);
  for (const entry of readdirSync(from, { withFileTypes: true })) {
    const [source, target] = [join(from, entry.name), join(to, entry.name)];
    if (entry.isSymbolicLink()) symlinkSync(readlinkSync(source), target);
    else if (entry.isDirectory()) linkFolder(source, target);
    else linkOrCopy(source, target);
  }
}

/** Nothing writes to the file of a package. It may be on another file system. */
function linkOrCopy(source: string, target: string): void {
  try {
    linkSync(source, target);
  } catch {
    copyFileSync(source, target);
  }
}
