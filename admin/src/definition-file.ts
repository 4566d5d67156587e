import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { findNodeAtLocation, parseTree, printParseErrorCode, type Node, type ParseError } from 'jsonc-parser';
import { UsageError } from './usage-error.ts';

/** A definition file, which is JSON and names its agent. */
export interface DefinitionFile {
  text: string;
  name: string;
  value: Record<string, unknown>;
  /** The line of the member at this JSON pointer, or of the nearest one around it; 1 is the first. */
  lineOf(pointer: string): number;
}

/** What is wrong with a file, and in which line. */
export class FileError extends UsageError {
  readonly line: number;
  constructor(file: string, line: number, message: string) {
    super(`${file}:${line}: ${message}`);
    this.line = line;
  }
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
 * @throws UsageError when the file cannot be read; FileError when it is not JSON, or names no agent
 */
export function readDefinition(path: string, shown: string): DefinitionFile {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    throw new UsageError(`${shown} cannot be read: ${(error as Error).message}`);
  }
  const errors: ParseError[] = [];
  const tree = parseTree(text, errors, { disallowComments: true });
  const [first] = errors;
  if (first || !tree) {
    const what = first ? `: ${inWords(printParseErrorCode(first.error))}` : '';
    throw new FileError(shown, lineAt(text, first?.offset ?? 0), `is not JSON${what}`);
  }
  const value = JSON.parse(text) as Record<string, unknown> | null;
  if (typeof value?.name !== 'string') throw new FileError(shown, 1, 'has no name of an agent');
  return { text, name: value.name, value, lineOf: (pointer) => lineAt(text, nodeAt(tree, pointer).offset) };
}

const lineAt = (text: string, offset: number): number => text.slice(0, offset).split('\n').length;

/** "CommaExpected" -> "comma expected". */
const inWords = (code: string): string => code.replace(/(?<!^)([A-Z])/g, ' $1').toLowerCase();

function nodeAt(tree: Node, pointer: string): Node {
  const segments = pointer
    .split('/')
    .slice(1)
    .map((segment) => segment.replaceAll('~1', '/').replaceAll('~0', '~'));
  for (let length = segments.length; length > 0; length--) {
    const node = findNodeAtLocation(
      tree,
      segments.slice(0, length).map((segment) => (/^\d+$/.test(segment) ? Number(segment) : segment)),
    );
    if (node) return node.parent ?? node;
  }
  return tree;
}
