import { FREE_CHUNKS, makeBodyBuffer, MIN_MEAN_BYTES } from 'platform/core/body-buffer.ts';

const MAX_BYTES = 1_000_000;

describe('the buffer of a body', () => {
  it('keeps no chunk: it copies each, so that a byte takes a byte, however it came', () => {
    const body = makeBodyBuffer(0, MAX_BYTES);
    const chunk = Buffer.alloc(1);
    for (let n = 0; n < FREE_CHUNKS; n++) {
      chunk[0] = n % 256;
      expect(body.add(chunk)).toBeUndefined();
    }
    expect(body.bytes()).toEqual(Buffer.from(Array.from({ length: FREE_CHUNKS }, (_, n) => n % 256)));
    expect(body.bytes().buffer.byteLength).toBeLessThanOrEqual(65_536);
  });

  it('takes many chunks if they are large on average, and none beyond its limit', () => {
    const body = makeBodyBuffer(0, MAX_BYTES);
    const chunk = Buffer.alloc(MIN_MEAN_BYTES, 'x');
    const faults = new Set(Array.from({ length: MAX_BYTES / MIN_MEAN_BYTES }, () => body.add(chunk)));
    expect(faults).toEqual(new Set([undefined]));
    expect(body.bytes()).toHaveLength(MAX_BYTES);
    expect(body.add(chunk)).toBe('too large');
    expect(body.bytes()).toHaveLength(0);
  });

  it('gives up what comes in too many small chunks', () => {
    const body = makeBodyBuffer(0, MAX_BYTES);
    const chunk = Buffer.alloc(MIN_MEAN_BYTES - 1);
    for (let n = 0; n < FREE_CHUNKS; n++) expect(body.add(chunk)).toBeUndefined();
    expect(body.add(chunk)).toBe('too many small chunks');
    expect(body.bytes()).toHaveLength(0);
  });
});
