const NEWLINE = 0x0a;

/**
 * Splits a stream of bytes into lines of UTF-8 text. Node's own channel between processes takes messages of any size;
 * this one keeps at most `maxBytes()` of a line that has not ended.
 * @returns takes a piece of the stream; false when a line is too long
 */
export function lineSplitter(maxBytes: () => number, onLine: (line: string) => void): (piece: Buffer) => boolean {
  let pieces: Buffer[] = [];
  let bytes = 0;
  return (piece) => {
    let from = 0;
    for (let end = piece.indexOf(NEWLINE); end >= 0; end = piece.indexOf(NEWLINE, from)) {
      bytes += end - from;
      if (bytes > maxBytes()) return false;
      const line = Buffer.concat([...pieces, piece.subarray(from, end)]);
      [pieces, bytes, from] = [[], 0, end + 1];
      onLine(line.toString());
    }
    pieces.push(piece.subarray(from));
    bytes += piece.length - from;
    return bytes <= maxBytes();
  };
}
