import fc from 'fast-check';
import { messagesOf } from '../../src/runtimes/messages.ts';

const textsOf = (texts: readonly string[]): string[] =>
  messagesOf(texts).map(({ role, parts }) => {
    expect([role, parts.length, parts[0]?.type]).toEqual(['agent', 1, 'text']);
    return parts[0]!.text;
  });

it('keeps texts in their order', () => expect(textsOf(['a', '', 'b'])).toEqual(['a', '', 'b']));

it('keeps a hundred texts, 2,000 characters of each and 16,384 of all', () => {
  expect(textsOf(Array.from({ length: 200 }, (_, n) => String(n)))).toHaveLength(100);
  expect(textsOf(['x'.repeat(5_000)])).toEqual(['x'.repeat(2_000)]);
  const many = textsOf(Array(50).fill('y'.repeat(1_000)) as string[]);
  expect(many.join('')).toBe('y'.repeat(16_384));
});

it('keeps what can be written as UTF-8, also where a text is cut', () => {
  fc.assert(
    fc.property(fc.array(fc.string({ unit: 'binary', maxLength: 4_000 })), (texts) => {
      for (const text of textsOf(texts)) expect(text.isWellFormed()).toBe(true);
    }),
    { numRuns: 50 },
  );
  expect(textsOf([`${'z'.repeat(1_999)}😀`])).toEqual([`${'z'.repeat(1_999)}\uFFFD`]);
});
