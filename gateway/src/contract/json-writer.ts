/**
 * Writes JSON text as bytes. What is written lies in one scratch buffer of the process, because a body is written
 * without a pause; what `end` returns are copies. Strings go from the message into the text without becoming strings.
 */
export interface JsonWriter {
  /** Forgets what was written and not ended, because an error came between. */
  begin(): void;
  /** ASCII text. */
  ascii(text: string): void;
  /** Bytes that are JSON already. */
  json(bytes: Uint8Array, start: number, end: number): void;
  /** A long value, which becomes a piece of its own and is not copied. */
  piece(bytes: Uint8Array): void;
  /** A string of which these bytes are the UTF-8 form. */
  string(bytes: Uint8Array, start: number, end: number): void;
  /** All that was written since `begin`, in pieces. */
  end(): Uint8Array[];
}

const SCRATCH_BYTES = 65_536;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const SPACE = 0x20;
const DEL = 0x7f;

export function makeJsonWriter(): JsonWriter {
  const scratch = Buffer.allocUnsafeSlow(SCRATCH_BYTES);
  let pieces: Uint8Array[] = [];
  let length = 0;

  function flush(): void {
    if (length > 0) pieces.push(Buffer.from(scratch.subarray(0, length)));
    length = 0;
  }

  /** @returns whether so many bytes fit, perhaps after those before them have become a piece */
  function hasRoom(bytes: number): boolean {
    if (length + bytes > SCRATCH_BYTES) flush();
    return bytes <= SCRATCH_BYTES;
  }

  function json(bytes: Uint8Array, start: number, end: number): void {
    if (!hasRoom(end - start)) return void pieces.push(bytes.slice(start, end));
    scratch.set(bytes.subarray(start, end), length);
    length += end - start;
  }

  return {
    begin() {
      pieces = [];
      length = 0;
    },
    json,
    ascii(text) {
      if (!hasRoom(text.length)) return void pieces.push(Buffer.from(text));
      for (let i = 0; i < text.length; i++) scratch[length++] = text.charCodeAt(i);
    },
    piece(bytes) {
      flush();
      pieces.push(bytes);
    },
    string(bytes, start, end) {
      if (hasRoom(end - start + 2)) {
        let at = length;
        scratch[at++] = QUOTE;
        let i = start;
        for (; i < end; i++) {
          const byte = bytes[i] as number;
          if (byte < SPACE || byte === QUOTE || byte === BACKSLASH || byte >= DEL) break;
          scratch[at++] = byte;
        }
        if (i === end) {
          scratch[at++] = QUOTE;
          length = at;
          return;
        }
      }
      const text = Buffer.from(
        JSON.stringify(Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start).toString()),
      );
      json(text, 0, text.length);
    },
    end() {
      flush();
      return pieces;
    },
  };
}
