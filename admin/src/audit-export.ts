import { open, type FileHandle } from 'node:fs/promises';
import { once } from 'node:events';
import { parseJson } from 'platform/core/parse-json.ts';
import { AuthServiceService, type AuditEntry } from 'proto/auth/v1/auth.ts';
import type { Context } from './context.ts';
import { UsageError } from './usage-error.ts';

const PAGE_SIZE = 1_000;
const PAGES_PER_NOTE = 10;
/** More than two lines have: no event is larger than 64 KiB. */
const TAIL_BYTES = 1_048_576;
const LINE_FEED = 0x0a;

/** Where an export goes on: after this number, or among the entries without a number after this id. */
interface Position {
  sequence: number;
  id: string;
}

interface ExportOptions {
  file?: string;
  after?: number;
}

/** Writes the entries as NDJSON, oldest first, to a file or to standard output. A file that is there is continued. */
export async function exportTrail(context: Context, { file, after = 0 }: ExportOptions): Promise<void> {
  const options = await context.onOrganization();
  const auth = context.client(AuthServiceService, 'auth');
  const page = async (position: Position, pageSize: number): Promise<AuditEntry[]> =>
    (await auth.exportAuditEntries({ pageSize, afterSequence: position.sequence, afterId: position.id }, options))
      .entries;
  const handle = file === undefined ? undefined : await openFile(context.pathOf(file));
  try {
    let position: Position = { sequence: after, id: '' };
    const last = handle && (await dropHalfLine(handle, file!));
    if (last) {
      if (after > 0)
        throw new UsageError(`${file} has entries already; it is continued after the last, without --after`);
      position = positionOf(last);
      await requireSameTrail(page, last, file!);
      context.note(`${file} is continued after entry ${last.sequence ?? last.id}`);
    }
    let count = 0;
    for (let pages = 1, size = PAGE_SIZE; size === PAGE_SIZE; pages++) {
      const entries = await page(position, PAGE_SIZE);
      size = entries.length;
      if (size === 0) break;
      await write(handle, entries.map((entry) => `${JSON.stringify(entry)}\n`).join(''));
      position = positionOf(entries.at(-1)!);
      count += size;
      if (pages % PAGES_PER_NOTE === 0) context.note(`${count} entries so far, up to ${entries.at(-1)!.at}`);
    }
    await handle?.sync();
    context.note(`${count} entries exported${position.sequence > 0 ? `; the last is ${position.sequence}` : ''}`);
  } finally {
    await handle?.close();
  }
}

const positionOf = ({ sequence = 0, id }: AuditEntry): Position =>
  sequence > 0 ? { sequence, id: '' } : { sequence: 0, id };

async function openFile(path: string): Promise<FileHandle> {
  // Not "a": a half line is cut off. Only its owner may read it.
  const create = (): Promise<FileHandle> => open(path, 'wx+', 0o600);
  return open(path, 'r+')
    .catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return create();
      throw error;
    })
    .catch((error: unknown) => {
      throw new UsageError(`${path} cannot be written: ${(error as Error).message}`);
    });
}

/** Cuts off what follows the last whole line. Resolves to the entry of that line; undefined when there is none. */
async function dropHalfLine(handle: FileHandle, name: string): Promise<AuditEntry | undefined> {
  const { size } = await handle.stat();
  const from = Math.max(0, size - TAIL_BYTES);
  const { buffer, bytesRead } = await handle.read(Buffer.alloc(size - from), 0, size - from, from);
  const tail = buffer.subarray(0, bytesRead);
  const end = tail.lastIndexOf(LINE_FEED);
  if (end === -1 && from > 0) throw new UsageError(`${name} is not an export of an audit trail`);
  const line = end === -1 ? undefined : tail.subarray(tail.lastIndexOf(LINE_FEED, end - 1) + 1, end).toString();
  const entry = line === undefined ? undefined : entryOf(line, name);
  if (end === -1 && size > 0 && tail[0] !== '{'.charCodeAt(0))
    throw new UsageError(`${name} is not an export of an audit trail`);
  await handle.truncate(from + end + 1);
  return entry;
}

/** @throws UsageError */
function entryOf(line: string, name: string): AuditEntry {
  try {
    const entry = parseJson(line) as Partial<AuditEntry>;
    if (typeof entry.id === 'string' && typeof entry.action === 'string') return entry as AuditEntry;
  } catch {
    // said below
  }
  throw new UsageError(`${name} is not an export of an audit trail`);
}

/** The entry after which a file goes on must be in this trail, unless it was removed after its retention. */
async function requireSameTrail(
  page: (position: Position, pageSize: number) => Promise<AuditEntry[]>,
  { sequence = 0, id }: AuditEntry,
  name: string,
): Promise<void> {
  if (sequence === 0) return;
  const [present] = await page({ sequence: sequence - 1, id: '' }, 1);
  if (present === undefined || (present.sequence === sequence && present.id !== id))
    throw new UsageError(`${name} is of another audit trail`);
}

async function write(handle: FileHandle | undefined, text: string): Promise<void> {
  if (!handle) {
    if (!process.stdout.write(text)) await once(process.stdout, 'drain');
    return;
  }
  const { size } = await handle.stat();
  const bytes = Buffer.from(text);
  for (let written = 0; written < bytes.length;)
    written += (await handle.write(bytes, written, bytes.length - written, size + written)).bytesWritten;
}
