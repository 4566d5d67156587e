import fc from 'fast-check';

/** Texts of which one to three places have lost up to two characters and got one of the pieces. */
export function damaged(texts: fc.Arbitrary<string>, pieces: readonly string[]): fc.Arbitrary<string> {
  const damage = fc.record({ at: fc.nat(), remove: fc.nat(2), insert: fc.constantFrom(...pieces) });
  return fc.tuple(texts, fc.array(damage, { minLength: 1, maxLength: 3 })).map(([text, damages]) =>
    damages.reduce((present, { at, remove, insert }) => {
      const index = at % (present.length + 1);
      return present.slice(0, index) + insert + present.slice(index + remove);
    }, text),
  );
}
