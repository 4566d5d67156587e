import type { ServiceDefinition } from './call.ts';

type Message = Readonly<Record<string, unknown>>;
type Method = Pick<ServiceDefinition[string], 'responseSerialize' | 'responseDeserialize'>;

/** A reply with fewer UTF-16 units of text is serialized at once; a larger one in pieces of about this size. */
const PIECE_LENGTH = 131_072;

/**
 * Serializes a reply. Of a large one a list is serialized in pieces, each in turn: the pieces of a message, one after
 * the other, are the message (https://protobuf.dev/programming-guides/encoding/#last-one-wins).
 */
export async function serializeReply(
  { responseSerialize, responseDeserialize }: Method,
  reply: unknown,
  inTurn: (work: () => Buffer) => Promise<Buffer>,
): Promise<Buffer> {
  const message = reply as Message;
  if (lengthOf(message, 3) <= PIECE_LENGTH) return responseSerialize(message);
  const empty = responseDeserialize(Buffer.alloc(0)) as Message;
  const lists = Object.entries(message).filter((entry): entry is [string, unknown[]] => Array.isArray(entry[1]));
  const rest = { ...message, ...Object.fromEntries(lists.map(([name]) => [name, []])) };
  const pieces = [await inTurn(() => responseSerialize(rest))];
  for (const [name, items] of lists)
    for (const piece of piecesOf(items))
      pieces.push(await inTurn(() => responseSerialize({ ...empty, [name]: piece })));
  return inTurn(() => Buffer.concat(pieces));
}

function piecesOf(items: readonly unknown[]): unknown[][] {
  const pieces: unknown[][] = [];
  let length = Infinity;
  for (const item of items) {
    if (length >= PIECE_LENGTH) {
      pieces.push([]);
      length = 0;
    }
    pieces.at(-1)!.push(item);
    length += 1 + lengthOf(item, 2);
  }
  return pieces;
}

/** The UTF-16 units of the texts in a value, down to so many levels: no more than the bytes of its message. */
function lengthOf(value: unknown, levels: number): number {
  if (typeof value === 'string' || value instanceof Uint8Array) return value.length;
  if (typeof value !== 'object' || value === null || levels === 0) return 0;
  let length = 0;
  if (Array.isArray(value)) for (const item of value) length += lengthOf(item, levels - 1);
  else for (const name in value) length += lengthOf((value as Message)[name], levels - 1);
  return length;
}
