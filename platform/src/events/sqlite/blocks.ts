import { deflateRawSync, inflateRawSync } from 'node:zlib';

/** Events of one topic that are stored as one row. */
export interface Block {
  count: number;
  events: Uint8Array;
}

/** A block is complete when its texts have this length, and a reader refuses one that inflates to much more. */
const BLOCK_LENGTH = 65_536;
const INFLATED_MAX_BYTES = 16_777_216;

/**
 * What most events repeat, so that a block of a single event is small, too. It is a part of the file format: blocks
 * that were written with another dictionary could not be read.
 */
const DICTIONARY = Buffer.from(
  '"kind":"service""kind":"operator""kind":"user","availableDeltaMicros":0,"reservedDeltaMicros":-0,"spentDeltaMicros":' +
    '0,"grantedDeltaMicros":0,"shortfallMicros":0,"availableMicros":0,"reservedMicros":0,"note":"","createdAt":"' +
    '"subject":"accounts/"source":"/credits","type":"credits.ledger.row.v1""kind":"RESERVE""kind":"SETTLE"' +
    '"source":"/agents","type":"agent.execution.started.v1","subject":"executions/","sessionId":"","agent":"' +
    '"type":"agent.execution.finished.v1","version":1,"status":"running","charge":null}}"status":"succeeded"' +
    '"action":"agent.run","outcome":"failure""target":{"type":"agent_execution","id":"' +
    '{"specversion":"1.0","id":"019","source":"/memory","type":"memory.object.created.v1","subject":"objects/019",' +
    '"time":"2026-01-01T00:00:00.000Z","datacontenttype":"application/json","organizationid":"019","partitionkey":"019",' +
    '"sequence":1,"data":{"id":"019","typeId":"019","type":"","key":"","revision":1,' +
    '"actor":{"kind":"server_token","id":"019","name":"","via":""},"requestId":""}}\n' +
    '"type":"audit.entry.v1","subject":"entries/019","data":{"action":"memory_object.create","outcome":"success",' +
    '"target":{"type":"memory_object","id":"019"},"code":null,"count":1,"requestId":""}}',
);

/** @param texts JSON of the events, without line feeds */
export function packEvents(texts: readonly string[]): Block[] {
  const blocks: Block[] = [];
  for (let from = 0; from < texts.length;) {
    let to = from;
    for (let length = 0; to < texts.length && length < BLOCK_LENGTH; to++) length += texts[to]!.length;
    const text = texts.slice(from, to).join('\n');
    blocks.push({ count: to - from, events: deflateRawSync(text, { level: 1, dictionary: DICTIONARY }) });
    from = to;
  }
  return blocks;
}

/** The texts of the block's events. In place of what cannot be read there are texts that are no JSON. */
export function unpackEvents({ count, events }: Block): string[] {
  const texts = inflated(events).split('\n');
  return Array.from({ length: count }, (_, place) => texts[place] ?? '');
}

function inflated(events: Uint8Array): string {
  try {
    return inflateRawSync(events, { dictionary: DICTIONARY, maxOutputLength: INFLATED_MAX_BYTES }).toString();
  } catch {
    return '';
  }
}
