import { checkFilter } from 'platform/store/checks.ts';

describe('a filter', () => {
  it.each([[{ a: undefined }], [{ a: { regex: 'x' } }], [{ 'a.b': 1 }], [{ a: {} }], [{ a: { in: [null] } }]])(
    'like %j is rejected',
    (filter) => {
      expect(() => checkFilter(filter)).toThrow(TypeError);
    },
  );
});
