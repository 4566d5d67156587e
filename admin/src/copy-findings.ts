import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { isDeepStrictEqual, promisify } from 'node:util';
import { parseJson } from 'platform/core/parse-json.ts';
import { StartError } from 'platform/core/start-error.ts';
import { inspectFile, VERIFY_COPY, type CopyFindings } from 'platform/service/verify-copy.ts';
import type { BackupFile } from './backup-manifest.ts';

const SERVICES = join(import.meta.dirname, '../../services');

/** Lets the owner of a copy look at it. @throws StartError with a line for each fault */
export async function findingsOf(file: string, name: string): Promise<CopyFindings> {
  const findings = name === 'events.db' ? { ...inspectFile(file), masterKeys: [] } : await askService(file, name);
  if (findings.faults.length > 0)
    throw new StartError([`The copy of ${name} is not whole:`, ...findings.faults].join('\n  '));
  return findings;
}

async function askService(file: string, name: string): Promise<CopyFindings> {
  const main = join(SERVICES, name.replace('.db', ''), 'src/main.ts');
  try {
    const { stdout } = await promisify(execFile)(process.execPath, [main, VERIFY_COPY, file], { maxBuffer: 1 << 26 });
    return parseJson(stdout) as CopyFindings;
  } catch (cause) {
    const { stderr = '' } = cause as { stderr?: string };
    throw new StartError(`The copy of ${name} cannot be opened: ${stderr.trim() || (cause as Error).message}`, {
      cause,
    });
  }
}

/** What of the rows and chains is not as the manifest says: a sentence for each table. */
export function differences({ name, rows = {}, chains }: BackupFile, found: CopyFindings): string[] {
  const tables = [...new Set([...Object.keys(rows), ...Object.keys(found.rows)])].sort();
  return [
    ...tables
      .filter((table) => rows[table] !== found.rows[table])
      .map((table) => `${name}: ${table} has ${found.rows[table] ?? 'no'} rows in place of ${rows[table] ?? 'none'}`),
    ...(isDeepStrictEqual(chains, found.chains) ? [] : [`${name}: its chains end elsewhere`]),
  ];
}
