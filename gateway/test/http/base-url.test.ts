import type { IncomingMessage } from 'node:http';
import { MemoryType } from 'proto/memory/v1/memory.ts';
import { baseUrl } from '../../src/http/base-url.ts';
import { parseRaw, raw, startGatewayFixture, TOKEN } from '../fixture.ts';

const urlOf = (headers: Record<string, string>, trustedProxies = 1, publicUrl = ''): string =>
  baseUrl({ headers: { host: 'own.example', ...headers }, socket: {} } as IncomingMessage, {
    publicUrl,
    trustedProxies,
  });
const OWN = 'http://own.example';

describe('scheme and host of a request behind proxies', () => {
  it.each<[string, Record<string, string>, number, string]>([
    ['are those of Forwarded', { forwarded: 'for=192.0.2.1;proto=https;host=api.example' }, 1, 'https://api.example'],
    [
      'also quoted, in any case, with an address and port',
      { forwarded: 'For="[2001:db8::1]:4711"; Host="[2001:db8::2]:8443"; Proto=HTTPS' },
      1,
      'https://[2001:db8::2]:8443',
    ],
    [
      'are those of X-Forwarded-*',
      { 'x-forwarded-proto': 'https', 'x-forwarded-host': 'api.example:8443' },
      1,
      'https://api.example:8443',
    ],
    [
      'may come from both kinds of header, one value from each',
      { forwarded: 'for=192.0.2.1;proto=https', 'x-forwarded-host': 'api.example' },
      1,
      'https://api.example',
    ],
    [
      'are what the only proxy appended, not what its client sent',
      { forwarded: 'proto=http;host=evil.example, proto=https;host=api.example' },
      1,
      'https://api.example',
    ],
    [
      'are what the outer of two proxies appended',
      { forwarded: 'host=evil.example, proto=https;host=api.example, proto=http;host=inner.example' },
      2,
      'https://api.example',
    ],
    [
      'are the first element if there are fewer elements than proxies',
      { forwarded: 'proto=https;host=api.example', 'x-forwarded-host': 'api.example' },
      3,
      'https://api.example',
    ],
    [
      'are found despite a quote that the client left open',
      { forwarded: 'host="evil.example;for=", proto=https;host=api.example' },
      1,
      'https://api.example',
    ],
    [
      "are not from a client's Forwarded that differs from the proxy's X-Forwarded-*",
      { forwarded: 'proto=ftp;host=evil.example', 'x-forwarded-proto': 'https', 'x-forwarded-host': 'api.example' },
      1,
      OWN,
    ],
    [
      "are not from a client's X-Forwarded-* that differs from the proxy's Forwarded",
      { forwarded: 'host=api.example', 'x-forwarded-host': 'evil.example' },
      1,
      OWN,
    ],
    ['are not taken from invalid values', { forwarded: 'proto=javascript;host="evil.example/path"' }, 1, OWN],
    [
      'are not taken from parameters with similar names',
      { forwarded: 'x-host=evil.example;hostname=evil.example' },
      1,
      OWN,
    ],
    [
      "are the request's own without a trusted proxy",
      { forwarded: 'proto=https;host=evil.example', 'x-forwarded-host': 'evil.example' },
      0,
      OWN,
    ],
  ])('%s', (_, headers, trustedProxies, expected) => {
    expect(urlOf(headers, trustedProxies)).toBe(expected);
  });
  describe('of an HTTP/1.0 request without Host', () => {
    const own = (localAddress: string, headers: Record<string, string>, trustedProxies = 0, publicUrl = '') =>
      baseUrl({ headers, socket: { localAddress, localPort: 8080 } } as unknown as IncomingMessage, {
        publicUrl,
        trustedProxies,
      });
    const forwardedHost = { 'x-forwarded-host': 'evil.example', forwarded: 'host=evil.example' };

    it.each([
      ['192.0.2.1', 'http://192.0.2.1:8080'],
      ['::ffff:192.0.2.1', 'http://192.0.2.1:8080'],
      ['2001:db8::1', 'http://[2001:db8::1]:8080'],
    ])('are the own address %s, whatever the client sends', (address, url) => {
      expect(own(address, {})).toBe(url);
      expect(own(address, forwardedHost)).toBe(url);
      // a proxy that is trusted has sent no valid host
      expect(own(address, { 'x-forwarded-host': 'a/b' }, 1)).toBe(url);
    });
    it('are in Location, too', async () => {
      const fixture = await startGatewayFixture({
        memory: {
          createMemoryType: async () => ({
            memoryType: MemoryType.decode(new Uint8Array()),
            outcome: 'CREATED' as const,
            location: '/api/memory/types/1',
          }),
        },
      });
      const body = '{"type":"t","jsonSchema":{}}';
      const reply = await raw(
        fixture.port,
        `POST http://evil.example/api/memory/types HTTP/1.0\r\nX-Forwarded-Host: evil.example\r\nForwarded: host=evil.example\r\nAuthorization: Bearer ${TOKEN}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
      );
      expect(parseRaw(reply).headers.get('location')).toBe(`${fixture.url}/api/memory/types/1`);
      await fixture.stop();
    });
    it('are those of PUBLIC_URL, if it is set', () => {
      expect(own('192.0.2.1', forwardedHost, 0, 'https://public.example')).toBe('https://public.example');
    });
  });
  it('are replaced by PUBLIC_URL', () => {
    expect(urlOf({ forwarded: 'proto=http;host=api.example' }, 1, 'https://public.example')).toBe(
      'https://public.example',
    );
  });
});
