import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseJson } from './parse-json.ts';

/** Number of this release, "0.3.0". All workspaces have the same (test/release.test.ts). */
export const RELEASE = (
  parseJson(readFileSync(join(import.meta.dirname, '../../package.json'), 'utf8')) as { version: string }
).version;
