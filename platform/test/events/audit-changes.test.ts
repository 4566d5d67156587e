import fc from 'fast-check';
import { changesOf, MAX_CHANGES_BYTES } from 'platform/events/audit-changes.ts';

describe('the changes of an audit entry', () => {
  it('are the fields that differ; what is absent is null', () => {
    expect(
      changesOf(
        { name: 'a', roles: ['admin'], groups: [], until: null, version: 1, same: ['x'] },
        { name: 'a', roles: ['admin', 'security_admin'], groups: [], until: '2030', version: 2, same: ['x'] },
      ),
    ).toEqual({ roles: [['admin'], ['admin', 'security_admin']], until: [null, '2030'], version: [1, 2] });
    expect(changesOf({}, { name: 'a', scopes: undefined })).toEqual({ name: [null, 'a'] });
    expect(changesOf({ name: 'a' }, {})).toEqual({ name: ['a', null] });
    expect(changesOf({ a: 1 }, { a: 1 })).toEqual({});
  });

  it('show that a text or a list was cut', () => {
    const { name, groups } = changesOf({}, { name: 'n'.repeat(500), groups: Array(1_000).fill('a group') });
    expect(name![1]).toBe(`${'n'.repeat(120)}…`);
    expect((groups![1] as string[]).at(-1)).toBe('…');
    expect((groups![1] as string[]).length).toBeGreaterThan(100);
  });

  it('never make an event too large', () => {
    const value = fc.oneof(fc.string({ unit: 'binary', maxLength: 9_000 }), fc.array(fc.string({ unit: 'binary' })));
    const state = fc.record({ a: value, b: value, c: fc.array(fc.string({ unit: 'binary', maxLength: 300 })) });
    fc.assert(
      fc.property(state, state, (before, after) => {
        const text = JSON.stringify(changesOf(before, after));
        expect(Buffer.byteLength(text)).toBeLessThanOrEqual(MAX_CHANGES_BYTES);
        expect(text.isWellFormed()).toBe(true);
      }),
    );
  });
});
