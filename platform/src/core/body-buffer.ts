/** A body may come in so many chunks of any size. */
export const FREE_CHUNKS = 4_096;
/** The chunks of a body that has more of them are at least so large on average: each one costs as much as a request. */
export const MIN_MEAN_BYTES = 64;
const FIRST_BYTES = 65_536;
const NOTHING = Buffer.alloc(0);

/** The bytes of one body. They are copied, because a chunk of one byte takes some hundred bytes of memory. */
export interface BodyBuffer {
  /** @returns undefined, or why nothing of the body is kept any more */
  add(chunk: Uint8Array): 'too large' | 'too many small chunks' | undefined;
  bytes(): Buffer<ArrayBuffer>;
}

/** @param declaredBytes size of the body as its sender declared it, or 0 */
export function makeBodyBuffer(declaredBytes: number, maxBytes: number): BodyBuffer {
  let buffer = Buffer.allocUnsafeSlow(Math.min(declaredBytes || FIRST_BYTES, maxBytes));
  let size = 0;
  let chunks = 0;
  return {
    add(chunk) {
      const start = size;
      size += chunk.length;
      chunks++;
      const isTooSmall = chunks > FREE_CHUNKS && size < chunks * MIN_MEAN_BYTES;
      if (isTooSmall || size > maxBytes) {
        buffer = NOTHING;
        return isTooSmall ? 'too many small chunks' : 'too large';
      }
      if (size > buffer.length) {
        const larger = Buffer.allocUnsafeSlow(Math.min(Math.max(size, 2 * buffer.length), maxBytes));
        buffer.copy(larger, 0, 0, start);
        buffer = larger;
      }
      buffer.set(chunk, start);
      return undefined;
    },
    bytes: () => buffer.subarray(0, size),
  };
}
