import { lookup } from 'node:dns';
import { isCallable, isPublic, lookupOnly, ForbiddenAddressError } from '../../../src/runtimes/network/addresses.ts';

it.each([
  '93.184.215.14',
  '1.1.1.1',
  '172.15.255.255',
  '172.32.0.1',
  '2606:4700:4700::1111',
  '2a00:1450:4001:81b::200e',
  '::ffff:93.184.215.14',
])('%s is an address of the public internet', (address) => expect(isPublic(address)).toBe(true));

it.each([
  ...['127.0.0.1', '127.255.255.254', '0.0.0.0', '0.1.2.3', '10.0.0.1', '172.16.0.1', '172.31.255.255', '192.168.1.1'],
  ...['169.254.169.254', '100.64.0.1', '100.127.255.255', '192.0.0.1', '192.0.2.1', '198.18.0.1', '198.51.100.1'],
  ...['203.0.113.1', '224.0.0.1', '239.255.255.255', '240.0.0.1', '255.255.255.255'],
  ...['::', '::1', '::127.0.0.1', '::ffff:127.0.0.1', '::ffff:a9fe:a9fe', '::ffff:0:127.0.0.1', '64:ff9b::7f00:1'],
  ...['64:ff9b:1::1', '2002:7f00:1::', '2001::1', '2001:db8::1', 'fc00::1', 'fd12:3456::1', 'fe80::1', 'fe80::1%eth0'],
  ...['fec0::1', 'ff02::1', '100::1', '4000::1', 'e000::1'],
  ...['', 'localhost', '2130706433', '0x7f.1', '127.1', '1.2.3.4.5', '1.2.3.4/8'],
])('%s is none', (address) => expect(isPublic(address)).toBe(false));

it('listed networks may be called, also without TLS; the public internet only with it', () => {
  const networks = ['10.1.0.0/16', 'fd00::/8'];
  for (const protocol of ['http:', 'https:']) {
    expect(isCallable('10.1.2.3', protocol, networks)).toBe(true);
    expect(isCallable('::ffff:10.1.2.3', protocol, networks)).toBe(true);
    expect(isCallable('fd00::1', protocol, networks)).toBe(true);
    expect(isCallable('10.2.0.1', protocol, networks)).toBe(false);
    expect(isCallable('1.1.1.1', protocol, networks)).toBe(protocol === 'https:');
  }
});

it.each([true, false])('a name resolves only to addresses that may be dialled (all: %s)', async (all) => {
  const resolve = (isAllowed: (address: string) => boolean): Promise<unknown> =>
    new Promise((done) =>
      lookupOnly(isAllowed, lookup)('localhost', { all }, (error, addresses) => done(error ?? addresses)),
    );
  expect(await resolve(() => false)).toBeInstanceOf(ForbiddenAddressError);
  const found = await resolve((address) => address === '127.0.0.1');
  expect(found).toEqual(all ? [{ address: '127.0.0.1', family: 4 }] : '127.0.0.1');
});
