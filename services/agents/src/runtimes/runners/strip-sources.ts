import { readFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { pathToFileURL } from 'node:url';

// The program that `stripSources` runs. Its arguments are TypeScript files; it prints their JavaScript, by URL.
const entries = process.argv
  .slice(2)
  .map((path) => [pathToFileURL(path).href, stripTypeScriptTypes(readFileSync(path, 'utf8'))]);
process.stdout.write(JSON.stringify(Object.fromEntries(entries)));
