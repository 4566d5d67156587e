import type { IncomingMessage } from 'node:http';
import { clientAddress } from '../../src/http/forwarded.ts';

const req = (headers: Record<string, string>): IncomingMessage =>
  ({ headers, socket: { remoteAddress: '192.0.2.1' } }) as unknown as IncomingMessage;

it.each([
  ['no proxy is trusted', 0, { 'x-forwarded-for': '203.0.113.7' }, '192.0.2.1'],
  ['the proxy says nothing', 1, {}, '192.0.2.1'],
  ['the proxy adds to what the client sent', 1, { 'x-forwarded-for': '10.0.0.1, 203.0.113.7' }, '203.0.113.7'],
  ['two proxies', 2, { 'x-forwarded-for': '10.0.0.1, 203.0.113.7, 198.51.100.1' }, '203.0.113.7'],
  ['a port', 1, { 'x-forwarded-for': '203.0.113.7:4711' }, '203.0.113.7'],
  ['IPv6', 1, { 'x-forwarded-for': '2001:db8::7' }, '2001:db8::7'],
  ['IPv6 with a port', 1, { forwarded: 'for="[2001:db8::7]:4711";proto=https' }, '2001:db8::7'],
  ['the standard header', 1, { forwarded: 'for=203.0.113.7;proto=https' }, '203.0.113.7'],
  ['a name', 1, { forwarded: 'for=_hidden' }, '192.0.2.1'],
  ['headers that differ', 1, { forwarded: 'for=203.0.113.7', 'x-forwarded-for': '203.0.113.8' }, ''],
] as const)('the address of the client: %s', (_what, trustedProxies, headers, address) =>
  expect(clientAddress(req(headers), trustedProxies)).toBe(address),
);
