import { makeByteBudget, type Permit } from '../../src/http/byte-budget.ts';

const acquired = (budget: ReturnType<typeof makeByteBudget>, organizationId: string, subject: string, bytes: number) =>
  budget.acquire(organizationId, subject, bytes) as Permit;

describe('the budget of bytes in flight', () => {
  it('has a bound for one token', () => {
    const budget = makeByteBudget({ totalBytes: 1_000, tokenBytes: 100 });
    const first = acquired(budget, 'o', 'a', 60);
    expect(acquired(budget, 'o', 'a', 41)).toBeUndefined();
    expect(first.tryResize(101)).toBe(false);
    expect(first.tryResize(Number.NaN)).toBe(false);
    expect(first.tryResize(100)).toBe(true);
    expect(acquired(budget, 'o', 'a', 1)).toBeUndefined();
    expect(acquired(budget, 'o', 'b', 100)).toBeDefined();
    first.giveBack();
    expect(acquired(budget, 'o', 'a', 100)).toBeDefined();
  });
  it('gives one organization at most half, two a third each, and always leaves as much for another', () => {
    const budget = makeByteBudget({ totalBytes: 1_200, tokenBytes: 1_200 });
    const takeAll = (organizationId: string): number => {
      let taken = 0;
      while (acquired(budget, organizationId, `token-${taken}`, 1)) taken++;
      return taken;
    };
    expect(takeAll('a')).toBe(600);
    expect(takeAll('b')).toBe(300);
    expect(takeAll('c')).toBe(150);
    expect(takeAll('a')).toBe(0);
  });
  it('counts what is held in fact, beyond its bounds, too, and nothing after it was given back', () => {
    const budget = makeByteBudget({ totalBytes: 1_000, tokenBytes: 100 });
    const write = acquired(budget, 'o', 'a', 10);
    write.resize(900);
    expect(acquired(budget, 'other', 'b', 101)).toBeUndefined();
    write.giveBack();
    write.resize(900);
    expect(write.tryResize(50)).toBe(true);
    expect(acquired(budget, 'other', 'b', 100)).toBeDefined();
    expect(acquired(budget, 'o', 'a', 100)).toBeDefined();
  });
  it('bounds what a user holds in one organization, whatever the user holds in another one', () => {
    const budget = makeByteBudget({ totalBytes: 1_000, tokenBytes: 100 });
    expect(acquired(budget, 'one', 'user', 100)).toBeDefined();
    expect(acquired(budget, 'other', 'user', 100)).toBeDefined();
    expect(acquired(budget, 'other', 'user', 1)).toBeUndefined();
  });
});
