import type { MethodOptions } from 'platform/rpc/method-options.ts';
import type { PrincipalKind } from 'platform/core/principal.ts';
import { denialReason } from '../src/authentication/access.ts';
import { TIERS } from '../src/tiers.ts';

const methodOptions = (given: Partial<MethodOptions>): MethodOptions => ({
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
  scope: '',
  readScope: '',
  rate: 'requests',
  errors: [],
  ...given,
});

describe('denialReason', () => {
  it.each<[string, Partial<MethodOptions>, PrincipalKind, string[], string | undefined]>([
    ['a server token has the role admin', { role: 'admin' }, 'SERVER_TOKEN', [], undefined],
    [
      'a server token never has security_admin, even if it claims to',
      { role: 'security_admin' },
      'SERVER_TOKEN',
      ['security_admin'],
      'FORBIDDEN',
    ],
    ['a user without admin gets admin_required', { role: 'admin' }, 'USER', ['security_admin'], 'ADMIN_REQUIRED'],
    ['a user with admin is admitted', { role: 'admin' }, 'USER', ['admin'], undefined],
    ['admin does not include security_admin', { role: 'security_admin' }, 'USER', ['admin'], 'FORBIDDEN'],
    ['the tier is checked before the role', { role: 'admin', capability: 'agents' }, 'USER', [], 'TIER_REQUIRED'],
    [
      'the tier is checked before the kind',
      { principals: ['OPERATOR'], capability: 'agents' },
      'SERVER_TOKEN',
      [],
      'TIER_REQUIRED',
    ],
    ['a kind of principal that is not listed is denied', { principals: ['USER'] }, 'SERVER_TOKEN', [], 'FORBIDDEN'],
    ['everybody is denied where no kind is listed', { principals: [] }, 'USER', ['admin'], 'FORBIDDEN'],
  ])('%s', (_, given, kind, roles, expected) => {
    expect(denialReason(methodOptions(given), { kind, roles }, TIERS.get('starter')!)).toBe(expected);
  });
});
