import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { importJWK, jwtVerify } from 'jose';
import { startAuth, type AuthFixture } from './fixture.ts';
import { userWithJwt } from './jwts.ts';

describe('GetJwks', () => {
  let fixture: AuthFixture;
  beforeAll(async () => {
    fixture = await startAuth();
  });
  afterAll(() => fixture.stop());

  it('publishes what anybody needs to check a JWT, and may be kept for five minutes', async () => {
    const { keys, cacheControl } = await fixture.gateway.getJwks({}, fixture.asGateway());
    expect(cacheControl).toBe('public, max-age=300');
    expect(keys).toEqual([
      {
        kty: 'EC',
        crv: 'P-256',
        x: expect.any(String),
        y: expect.any(String),
        kid: expect.any(String),
        use: 'sig',
        alg: 'ES256',
      },
    ]);
    const { jwt } = await userWithJwt(fixture);
    const verified = await jwtVerify(jwt, await importJWK({ ...keys[0] }, 'ES256'), {
      currentDate: new Date(fixture.clock.now()),
    });
    expect(verified.protectedHeader.kid).toBe(keys[0]?.kid);
  });

  it('the private key is nowhere in the store in plain', async () => {
    await fixture.running.restart();
    const file = readFileSync(join(fixture.running.folder, 'auth.db'), 'latin1');
    expect(file).toContain('signing_keys');
    expect(file).not.toMatch(/"d":"[\w-]{43}"/);
  });
});
