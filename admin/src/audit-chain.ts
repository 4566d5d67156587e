import { AuthServiceService, type AuditFault, type AuditPlace } from 'proto/auth/v1/auth.ts';
import type { Context } from './context.ts';
import { UsageError } from './usage-error.ts';

const PAGE_SIZE = 1_000;
const HEAD = /^(\d{1,15}):([\w-]{43})$/;

/** The parser of an option that takes a head as `audit verify` prints it. @throws UsageError */
export function headOf(text: string): AuditPlace {
  const [, sequence, hash] = HEAD.exec(text) ?? [];
  if (sequence === undefined || hash === undefined)
    throw new UsageError(`${text} is not a head as audit verify prints it, such as 42:n4bQgYhMfWWaL-qg…`);
  return { sequence: Number(sequence), hash };
}
const inWords = ({ sequence, hash }: AuditPlace): string | undefined =>
  sequence === 0 ? undefined : `${sequence}:${hash}`;

/** Checks the whole chain and prints what it found. The exit code is 1 when there are faults. */
export async function verifyTrail(context: Context, noted: AuditPlace | undefined): Promise<void> {
  const options = await context.onOrganization();
  const auth = context.client(AuthServiceService, 'auth');
  const faults: AuditFault[] = [];
  let [entries, unchained] = [0, 0];
  for (let after: AuditPlace | undefined; ;) {
    const page = await auth.verifyAuditTrail({ pageSize: PAGE_SIZE, after, noted }, options);
    faults.push(...page.faults);
    entries += page.entries;
    unchained += page.unchained;
    after = page.last;
    if (page.hasMore) continue;
    const head = inWords(page.head!);
    const removedUntil = inWords(page.start!);
    const sentences = faults.map(sentenceOf);
    context.printRecord(
      {
        entries,
        unchained,
        head,
        removedUntil,
        faults: faults.map((fault, n) => ({ ...fault, message: sentences[n] })),
      },
      { entries, unchained, head, removedUntil, faults: faults.length },
    );
    sentences.forEach(context.note);
    if (faults.length > 0) process.exitCode = 1;
    return;
  }
}

function sentenceOf({ kind, sequence, through = sequence, entryId }: AuditFault): string {
  const entry = `Entry ${sequence}${entryId ? ` (${entryId})` : ''}`;
  switch (kind) {
    case 'removed':
      return through === sequence ? `Entry ${sequence} was removed` : `Entries ${sequence} to ${through} were removed`;
    case 'changed':
      return `${entry} was changed`;
    case 'moved':
      return `${entry} does not follow the one before it: one of them was replaced or moved`;
    case 'added':
      return `${entry} was added beside the chain`;
    default:
      return `The noted head ${sequence} is not in the trail: it was cut off or written anew`;
  }
}
