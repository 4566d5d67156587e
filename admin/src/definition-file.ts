import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { parseJson } from 'platform/core/parse-json.ts';
import { InputError, readJsonInput, type JsonInput } from './json-input.ts';
import { UsageError } from './usage-error.ts';

/** A definition file, which is JSON and names its agent. */
export interface DefinitionFile extends Pick<JsonInput, 'text' | 'lineOf'> {
  name: string;
  value: Record<string, unknown>;
}

/**
 * The definition files that a path names: itself, or each `*.json` of the folder, by name.
 * @param path as the file system knows it
 * @param shown as the user gave it
 * @throws UsageError
 */
export function definitionFilesOf(path: string, shown: string): { path: string; shown: string }[] {
  try {
    if (!statSync(path).isDirectory()) return [{ path, shown }];
    const names = readdirSync(path).filter((name) => name.endsWith('.json'));
    if (names.length === 0) throw new UsageError(`The folder ${shown} has no file *.json`);
    return names.sort().map((name) => ({ path: join(path, name), shown: join(shown, name) }));
  } catch (error) {
    if (error instanceof UsageError) throw error;
    throw new UsageError(`${shown} cannot be read: ${(error as Error).message}`);
  }
}

/**
 * @param shown the file as the user gave it
 * @throws UsageError when the file cannot be read; InputError when it is not JSON by the rules of REST, or names no
 * agent
 */
export function readDefinition(path: string, shown: string): DefinitionFile {
  let bytes: Buffer;
  try {
    bytes = readFileSync(path);
  } catch (error) {
    throw new UsageError(`${shown} cannot be read: ${(error as Error).message}`);
  }
  const { text, json, lineOf } = readJsonInput(bytes, shown, ['argumentsSchema', 'outputSchema']);
  const value = parseJson(json.toString()) as Record<string, unknown> | null;
  if (typeof value?.name !== 'string')
    throw new InputError(shown, { line: 1, path: '', message: 'has no name of an agent' });
  return { text, name: value.name, value, lineOf };
}
