import { connect } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { pathToFileURL } from 'node:url';

/** What a process of the product has done so far. */
export interface WorkCounts {
  /** Transactions that SQLite has made durable. */
  commits: number;
  /** RPCs that it has served. */
  calls: number;
  /** Messages on the streams that carry calls to it, in both directions. */
  messages: number;
}

/** Settings by which every process of a stack counts its work. @param folder for the sockets that tell the counts */
export function countingEnv(folder: string): Record<string, string> {
  const preload = pathToFileURL(join(import.meta.dirname, 'preload.ts'));
  preload.searchParams.set('folder', folder);
  return { NODE_OPTIONS: `--import=${preload.href}` };
}

/** @param folder as given to `countingEnv` */
export async function workOf(folder: string, pid: number): Promise<WorkCounts> {
  return JSON.parse(await text(connect(join(folder, `${pid}.sock`)))) as WorkCounts;
}
