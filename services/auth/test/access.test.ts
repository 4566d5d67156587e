import type { MethodOptions } from 'platform/rpc/method-options.ts';
import type { PrincipalKind } from 'platform/core/principal.ts';
import { refusalOf } from '../src/authentication/access.ts';
import { TIERS } from '../src/tiers.ts';

const policy = (given: Partial<MethodOptions>): MethodOptions => ({
  principals: ['SERVER_TOKEN', 'USER'],
  callers: [],
  role: '',
  capability: '',
  public: false,
  deadlineMs: 0,
  repeatable: false,
  outlivesClientWith: '',
  ignoredMembers: [],
  maxBodyBytes: 0,
  ...given,
});

describe('access to a method', () => {
  it.each<[string, Partial<MethodOptions>, PrincipalKind, string[], string | undefined]>([
    ['a token has the admin role', { role: 'admin' }, 'SERVER_TOKEN', [], undefined],
    ['a token never has security_admin', { role: 'security_admin' }, 'SERVER_TOKEN', ['security_admin'], 'FORBIDDEN'],
    ['a user without admin is told so', { role: 'admin' }, 'USER', ['security_admin'], 'ADMIN_REQUIRED'],
    ['a user with admin may', { role: 'admin' }, 'USER', ['admin'], undefined],
    ['admin is not security_admin', { role: 'security_admin' }, 'USER', ['admin'], 'FORBIDDEN'],
    ['the tier speaks before the role', { role: 'admin', capability: 'agents' }, 'USER', [], 'TIER_REQUIRED'],
    [
      'the tier speaks before the kind',
      { principals: ['OPERATOR'], capability: 'agents' },
      'SERVER_TOKEN',
      [],
      'TIER_REQUIRED',
    ],
    ['a kind that is not listed may not', { principals: ['USER'] }, 'SERVER_TOKEN', [], 'FORBIDDEN'],
    ['nobody may where none is listed', { principals: [] }, 'USER', ['admin'], 'FORBIDDEN'],
  ])('%s', (_, given, kind, roles, expected) => {
    expect(refusalOf(policy(given), { kind, roles }, TIERS.get('starter')!)).toBe(expected);
  });
});
