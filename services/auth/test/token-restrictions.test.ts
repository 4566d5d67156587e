import fc from 'fast-check';
import { allMethodOptions } from 'platform/rpc/method-options.ts';
import { isInRanges, requireAddressRanges } from 'platform/core/address-ranges.ts';
import { SCOPES } from '../src/server-tokens/scopes.ts';
import { denialOf, expectError, LIST_TYPES, RUN_AGENT, startAuth, type AuthFixture } from './fixture.ts';

const CREATE_TYPE = '/memory.v1.MemoryService/CreateMemoryType';

describe('a server token with restrictions', () => {
  let fixture: AuthFixture;
  let here: Awaited<ReturnType<AuthFixture['withSecurityAdmin']>>;
  let names = 0;
  beforeAll(async () => {
    fixture = await startAuth();
    here = await fixture.withSecurityAdmin();
  });
  afterAll(() => fixture.stop());

  const create = (scopes: string[], addressRanges: string[] = []) =>
    fixture.auth.createServerToken(
      { name: `token ${++names}`, restrictions: { scopes, addressRanges } },
      here.asAdmin(),
    );
  const decide = async (bearer: string, method: string, address = '203.0.113.9') =>
    denialOf((await fixture.authenticate({ bearer, method, address }))[0]!);

  it('does what its scopes say, and is forbidden the rest, with a sentence that names the scope', async () => {
    const { value: reader, serverToken } = await create(['memory:read']);
    expect(serverToken?.scopes).toEqual(['memory:read']);
    expect(await decide(reader, LIST_TYPES)).toBeUndefined();
    expect(await decide(reader, CREATE_TYPE)).toBe('FORBIDDEN');
    expect(await decide(reader, RUN_AGENT)).toBe('FORBIDDEN');
    expect(await decide(reader, '/auth.v1.AuthService/WhoAmI')).toBeUndefined();
    const [decision] = await fixture.authenticate({ bearer: reader, method: RUN_AGENT });
    expect(decision?.denial?.message).toBe('This server token does not have the scope agents:run');
    const { value: both } = await create(['agents:run', 'memory:write', 'agents:run']);
    expect(await Promise.all([LIST_TYPES, CREATE_TYPE, RUN_AGENT].map((method) => decide(both, method)))).toEqual([
      'FORBIDDEN',
      undefined,
      undefined,
    ]);
  });

  it('has all scopes by default, in lists, too', async () => {
    const { value, serverToken } = await create([]);
    expect([serverToken?.scopes, serverToken?.addressRanges]).toEqual([[...SCOPES], []]);
    for (const method of [LIST_TYPES, CREATE_TYPE, RUN_AGENT]) expect(await decide(value, method)).toBeUndefined();
    const { serverTokens } = await fixture.auth.listServerTokens({ pageSize: 1, afterId: '' }, here.asAdmin());
    expect(serverTokens[0]?.scopes).toEqual([...SCOPES]);
  });

  it('works from its address ranges only, and from nowhere when the address is unknown', async () => {
    const { value } = await create([], ['203.0.113.0/24', '2001:db8::/32']);
    const from = (address: string) => decide(value, LIST_TYPES, address);
    expect(await from('203.0.113.255')).toBeUndefined();
    expect(await from('::ffff:203.0.113.1')).toBeUndefined();
    expect(await from('2001:db8:1::1')).toBeUndefined();
    for (const address of ['203.0.114.1', '2001:db9::1', '', 'unknown', '::1'])
      expect([address, await from(address)]).toEqual([address, 'FORBIDDEN']);
    const trail = await fixture.auditTrail(here.organizationId, (actions) => actions.includes('request.refused'));
    expect(trail.find(({ action }) => action === 'request.refused')).toMatchObject({ code: 'forbidden' });
  });

  it('a revoked one is 401 from everywhere: restrictions are no way to learn that it existed', async () => {
    const { value, serverToken } = await create(['memory:read'], ['203.0.113.0/24']);
    await fixture.auth.revokeServerToken({ idOrName: serverToken!.id }, here.asAdmin());
    for (const address of ['203.0.113.9', '198.51.100.1'])
      expect(await decide(value, RUN_AGENT, address)).toBe('UNAUTHENTICATED');
  });

  it.each([
    [['memory:all'], [], '/scopes/0'],
    [['memory:read', ''], [], '/scopes/1'],
    [[], ['203.0.113.0/33'], '/addressRanges/0'],
    [[], ['10.0.0.0/8', 'example.com'], '/addressRanges/1'],
    [[], ['2001:db8::/129'], '/addressRanges/0'],
    [[], ['::ffff:10.0.0.1/128'], '/addressRanges/0'],
    [[], ['10.0.0.0/-1'], '/addressRanges/0'],
    [[], Array<string>(21).fill('10.0.0.1'), '/addressRanges'],
  ])('is not made of scopes %j and ranges %j', async (scopes, ranges, path) => {
    const { details } = await expectError(create(scopes, ranges), 'INVALID_REQUEST');
    expect(details.map((detail) => detail.path)).toEqual([path]);
  });
});

it('every method of the REST API that needs a capability needs a scope', () => {
  const rest = [...allMethodOptions()].filter(([, { callers }]) => callers.includes('gateway'));
  const without = rest.filter(([, { capability, scope }]) => capability !== '' && scope === '');
  expect(without.map(([path]) => path)).toEqual([]);
  const unknown = rest.filter(([, { scope }]) => scope !== '' && !SCOPES.some((known) => known === scope));
  expect(unknown.map(([path]) => path)).toEqual([]);
});

it('every method for which memory:write is enough needs memory:read to tell what is stored', () => {
  const writes = [...allMethodOptions()].filter(([, { scope }]) => scope === 'memory:write');
  expect(writes.map(([path, { readScope }]) => [path, readScope])).toEqual(
    writes.map(([path]) => [path, 'memory:read']),
  );
});

it('an IPv4 address is in a network if their first bits are the same', () => {
  const bits = (address: number, prefix: number): number => Math.floor(address / 2 ** (32 - prefix));
  const text = (address: number): string => [24, 16, 8, 0].map((shift) => (address >>> shift) & 255).join('.');
  fc.assert(
    fc.property(
      fc.nat(2 ** 32 - 1),
      fc.nat(2 ** 32 - 1),
      fc.integer({ min: 0, max: 32 }),
      fc.boolean(),
      (address, random, prefix, near) => {
        const network = near ? (address ^ (random >>> prefix)) >>> 0 : random;
        const [range] = requireAddressRanges([`${text(network)}/${prefix}`])!;
        expect(isInRanges(text(address), [range!])).toBe(bits(address, prefix) === bits(network, prefix));
      },
    ),
  );
});
