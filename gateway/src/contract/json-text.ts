/** JSON: a text, or its UTF-8 bytes in pieces. */
export type JsonText = string | readonly Uint8Array[];

export const byteLength = (text: JsonText): number =>
  typeof text === 'string' ? Buffer.byteLength(text) : text.reduce((sum, { length }) => sum + length, 0);

/** The pieces as bytes, none of them longer than maxBytes. Copies no bytes. */
export function* slicesOf(text: JsonText, maxBytes: number): Generator<Uint8Array> {
  for (const bytes of typeof text === 'string' ? [Buffer.from(text)] : text)
    for (let start = 0; start < bytes.length; start += maxBytes) yield bytes.subarray(start, start + maxBytes);
}
