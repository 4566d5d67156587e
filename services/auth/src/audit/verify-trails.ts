import { createHash } from 'node:crypto';
import type { Chains } from 'platform/service/verify-copy.ts';
import { checkChain, START, type Fault } from './chain.ts';
import { NO_ID, type AuditEntries, type AuditHeadRecord } from './store.ts';

const PAGE = 1_000;

/** Follows the chains of all organizations in a trail to which nobody appends. */
export async function verifyTrails(auditEntries: Pick<AuditEntries, 'headsAfter' | 'chainAfter'>): Promise<Chains> {
  const ends = createHash('sha256');
  const faults: string[] = [];
  let [organizations, links] = [0, 0];
  for (
    let heads, last = NO_ID;
    (heads = await auditEntries.headsAfter(last, PAGE)).length > 0;
    last = heads.at(-1)!._id
  )
    for (const head of heads) {
      const found = await follow(auditEntries, head);
      organizations += 1;
      links += found.links;
      ends.update(`${head._id} ${head.sequence} ${head.hash}\n`);
      faults.push(...found.faults.map((fault) => `The audit trail of the organization ${head._id} ${fault}`));
    }
  return { organizations, links, ends: ends.digest('hex'), faults };
}

async function follow(
  auditEntries: Pick<AuditEntries, 'chainAfter'>,
  { organizationId, sequence, hash, startSequence, startHash }: AuditHeadRecord,
): Promise<{ links: number; faults: string[] }> {
  const faults: string[] = [];
  let links = 0;
  let place = startSequence === 0 ? START : { sequence: startSequence, hash: startHash };
  for (let entries; (entries = await auditEntries.chainAfter(organizationId, place.sequence, PAGE)).length > 0;) {
    const checked = checkChain(place, entries);
    faults.push(...checked.faults.map(inWords));
    links += entries.length;
    place = checked.last;
  }
  if (place.sequence !== sequence || place.hash !== hash)
    faults.push(`ends with entry ${place.sequence}, but its head is entry ${sequence}`);
  return { links, faults };
}

const inWords = ({ kind, sequence, through = sequence }: Fault): string =>
  kind === 'removed' ? `has no entries ${sequence} to ${through}` : `has an entry ${sequence} that was ${kind}`;
