import { principalWith } from 'platform/service/testing.ts';
import { limitsOf } from '../../src/limits/principal-limits.ts';

it('a user has limits of their own in each organization', () => {
  const keysIn = (organizationId: string) =>
    limitsOf(principalWith({ kind: 'USER', organizationId, subject: 'ada' }), 'requests', { requests: 1 }).map(
      ({ key }) => key,
    );
  expect(new Set([...keysIn('one'), ...keysIn('other')]).size).toBe(4);
});
