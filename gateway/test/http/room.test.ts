import { makeRoom, type Reservation } from '../../src/http/room.ts';

const reserved = (room: ReturnType<typeof makeRoom>, organizationId: string, subject: string, bytes: number) =>
  room.reserve({ organizationId, subject }, bytes) as Reservation;

describe('the room for bytes in flight', () => {
  it('has a bound for one token', () => {
    const room = makeRoom({ totalBytes: 1_000, tokenBytes: 100 });
    const first = reserved(room, 'o', 'a', 60);
    expect(reserved(room, 'o', 'a', 41)).toBeUndefined();
    expect(first.tryResize(101)).toBe(false);
    expect(first.tryResize(100)).toBe(true);
    expect(reserved(room, 'o', 'a', 1)).toBeUndefined();
    expect(reserved(room, 'o', 'b', 100)).toBeDefined();
    first.release();
    expect(reserved(room, 'o', 'a', 100)).toBeDefined();
  });
  it('gives one organization at most half, two a third each, and always leaves as much for another', () => {
    const room = makeRoom({ totalBytes: 1_200, tokenBytes: 1_200 });
    const takeAll = (organizationId: string): number => {
      let taken = 0;
      while (reserved(room, organizationId, `token-${taken}`, 1)) taken++;
      return taken;
    };
    expect(takeAll('a')).toBe(600);
    expect(takeAll('b')).toBe(300);
    expect(takeAll('c')).toBe(150);
    expect(takeAll('a')).toBe(0);
  });
  it('counts what is held in fact, beyond its bounds, too, and nothing after the release', () => {
    const room = makeRoom({ totalBytes: 1_000, tokenBytes: 100 });
    const write = reserved(room, 'o', 'a', 10);
    write.resize(900);
    expect(reserved(room, 'other', 'b', 101)).toBeUndefined();
    write.release();
    write.resize(900);
    write.release();
    expect(reserved(room, 'other', 'b', 100)).toBeDefined();
    expect(reserved(room, 'o', 'a', 100)).toBeDefined();
  });
});
