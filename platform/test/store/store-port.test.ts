import { checkFilter } from 'platform/store/store.ts';

describe('the store port', () => {
  it.each([[{ a: undefined }], [{ a: { regex: 'x' } }], [{ 'a.b': 1 }], [{ a: {} }], [{ a: { in: [null] } }]])(
    'refuses the filter %j',
    (filter) => {
      expect(() => checkFilter(filter)).toThrow(TypeError);
    },
  );
});
