import type { Call } from 'platform/rpc/handle.ts';
import { identifyCaller } from 'platform/rpc/interceptors/caller.ts';
import { servicePrincipal, type Principal } from 'platform/core/principal.ts';
import { operator, principalWith, serverToken } from 'platform/service/testing.ts';

const outcomeOf = (caller: string, principal: Principal): Promise<unknown> =>
  identifyCaller({ peer: { name: caller, check: async () => undefined }, principal } as Call, async () => 'handled');

describe('a caller', () => {
  it.each<[string, string, Principal]>([
    ['a service', 'a server token', serverToken('o1', { roles: ['a'] })],
    ['a service', 'a user', principalWith({ kind: 'USER', organizationId: 'o1', subject: 'u1' })],
    ['a service', 'itself', servicePrincipal('gateway', 'o1')],
  ])('that is %s may call for %s', async (_who, _whom, principal) =>
    expect(outcomeOf('gateway', principal)).resolves.toBe('handled'),
  );

  it('that is an operator may call for itself, and for a user through whom it acts', async () => {
    await expect(outcomeOf('operator:test', operator())).resolves.toBe('handled');
    const user = principalWith({ kind: 'USER', organizationId: 'o1', subject: 'u1', via: 'test' });
    await expect(outcomeOf('operator:test', user)).resolves.toBe('handled');
  });

  it.each<[string, string, Principal]>([
    ['an operator that is not its caller', 'operator:test', { ...operator(), subject: 'root', name: 'root' }],
    ['an operator under another name', 'operator:test', { ...operator(), name: 'root' }],
    ['an operator, but its caller a service', 'gateway', operator()],
    ['a server token, but its caller an operator', 'operator:test', serverToken('o1')],
    [
      'a user whose via does not name the calling operator',
      'operator:test',
      principalWith({ kind: 'USER', organizationId: 'o1', subject: 'u1' }),
    ],
    ['another service', 'gateway', servicePrincipal('agents', 'o1')],
    ['a service under another name', 'gateway', { ...servicePrincipal('gateway', 'o1'), name: 'agents' }],
    ['an operator, through whom another acts', 'operator:test', { ...operator(), via: 'root' }],
    ['a service, through which an operator acts', 'gateway', { ...servicePrincipal('gateway', 'o1'), via: 'root' }],
    ['a server token, through which an operator acts', 'gateway', serverToken('o1', { via: 'root' })],
    ['empty', 'gateway', principalWith({})],
  ])('is refused when its principal is %s', async (_whom, caller, principal) =>
    expect(outcomeOf(caller, principal)).rejects.toMatchObject({ reason: 'UNAUTHENTICATED' }),
  );
});
