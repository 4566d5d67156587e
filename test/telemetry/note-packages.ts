import { writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';

/** Node imports it before a program of the product (NODE_OPTIONS=--import=…/note-packages.ts?folder=…). */
const folder = new URL(import.meta.url).searchParams.get('folder')!;
process.on('exit', () => {
  const names = Object.keys(createRequire(import.meta.url).cache).map(
    (file) => /\/node_modules\/((?:@[^/]+\/)?[^/]+)\/[^]*$/.exec(file)?.[1] ?? '',
  );
  writeFileSync(join(folder, String(process.pid)), JSON.stringify([...new Set(names)]));
});
