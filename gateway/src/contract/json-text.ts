/** JSON: one text, or, if it is long, pieces in their order, of which some are UTF-8 bytes of the message. */
export type JsonText = string | readonly Piece[];
type Piece = string | Uint8Array;

export function concatenate(texts: readonly JsonText[]): JsonText {
  const pieces: Piece[] = [];
  let short = '';
  for (const text of texts) {
    if (typeof text === 'string') short += text;
    else {
      pieces.push(short, ...text);
      short = '';
    }
  }
  if (pieces.length === 0) return short;
  pieces.push(short);
  return pieces;
}

export const byteLength = (text: JsonText): number =>
  typeof text === 'string'
    ? Buffer.byteLength(text)
    : text.reduce((sum, piece) => sum + (typeof piece === 'string' ? Buffer.byteLength(piece) : piece.length), 0);

/** The pieces as bytes, none of them longer than maxBytes. Copies no bytes. */
export function* slicesOf(text: JsonText, maxBytes: number): Generator<Uint8Array> {
  for (const piece of typeof text === 'string' ? [text] : text) {
    const bytes = typeof piece === 'string' ? Buffer.from(piece) : piece;
    for (let start = 0; start < bytes.length; start += maxBytes) yield bytes.subarray(start, start + maxBytes);
  }
}
