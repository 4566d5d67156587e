import { DAY_MS, HOUR_MS } from 'platform/core/clock.ts';
import { PUBLISHED_BEFORE_MS, SKEW_MS } from '../src/signing-keys/rules.ts';
import { writeFileSync } from 'node:fs';
import { makeMasterKey } from 'platform/core/master-key.ts';
import { keyFolderOf, masterKeyFileOf } from 'platform/rpc/keys.ts';
import { denialOf, expectError, startAuth, type AuthFixture } from './fixture.ts';
import { partOf, userWithJwt } from './jwts.ts';

describe('RotateSigningKey', () => {
  let fixture: AuthFixture;
  beforeEach(async () => {
    fixture = await startAuth();
  });
  afterEach(() => fixture.stop());

  const kids = async () => (await fixture.gateway.getJwks({}, fixture.asGateway())).keys.map(({ kid }) => kid);
  const decide = async (bearer: string) => denialOf((await fixture.authenticate({ bearer }))[0]!);
  const rotate = async (withdraw = false) =>
    (await fixture.auth.rotateSigningKey({ withdraw }, fixture.asOperator())).signingKey!;

  it('the next key is published before it signs, and the one before until its last JWT has ended', async () => {
    const [first] = await kids();
    const { id: next } = await rotate();
    expect(await kids()).toEqual([next, first]);
    expect(partOf((await userWithJwt(fixture)).jwt, 0).kid).toBe(first);
    fixture.clock.advance(PUBLISHED_BEFORE_MS - 1);
    const { jwt } = await userWithJwt(fixture);
    expect(partOf(jwt, 0).kid).toBe(first);
    fixture.clock.advance(1);
    expect(partOf((await userWithJwt(fixture)).jwt, 0).kid).toBe(next);
    fixture.clock.advance(HOUR_MS - 1_001);
    expect(await decide(jwt)).toBeUndefined();
    expect(await kids()).toEqual([next, first]);
    fixture.clock.advance(1_001 + SKEW_MS);
    expect(await kids()).toEqual([next]);
  });

  it('with --withdraw, JWTs of every earlier key are refused on the next request', async () => {
    const { jwt } = await userWithJwt(fixture);
    expect(await decide(jwt)).toBeUndefined();
    const { id } = await rotate(true);
    expect(await decide(jwt)).toBe('UNAUTHENTICATED');
    expect(await kids()).toEqual([id]);
    expect(await decide((await userWithJwt(fixture)).jwt)).toBeUndefined();
  });

  it('the job makes the next key when it is due, and keys survive a restart', async () => {
    const [first] = await kids();
    expect((await fixture.running.runJob('signing-keys')).count).toBe(0);
    fixture.clock.advance(30 * DAY_MS - PUBLISHED_BEFORE_MS);
    expect((await fixture.running.runJob('signing-keys')).count).toBe(1);
    expect((await fixture.running.runJob('signing-keys')).count).toBe(0);
    const [next] = await kids();
    expect(next).not.toBe(first);
    fixture.clock.advance(PUBLISHED_BEFORE_MS);
    const { jwt } = await userWithJwt(fixture);
    await fixture.restart();
    expect(await decide(jwt)).toBeUndefined();
    expect((await kids())[0]).toBe(next);
  });

  it('ends what another master key has sealed: JWTs are issued again', async () => {
    const { organizationId, user, jwt } = await userWithJwt(fixture);
    writeFileSync(masterKeyFileOf(keyFolderOf(fixture.running.folder)), makeMasterKey());
    await fixture.restart();
    const issue = () => fixture.auth.issueJwt({ email: user.email }, fixture.asOperator(organizationId));
    expect(await decide(jwt)).toBeUndefined();
    const { message } = await expectError(issue(), 'UNAVAILABLE');
    expect(message).toBe('The key that signs JWTs was sealed under another master key');
    await rotate(true);
    expect(await decide((await issue()).jwt)).toBeUndefined();
  });
});
