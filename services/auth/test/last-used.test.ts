import { isoTime } from 'platform/core/clock.ts';
import { flushLastUsed } from '../src/jobs/last-used.ts';
import { makeLastUsed } from '../src/authentication/last-used.ts';
import { startAuth, type AuthFixture } from './fixture.ts';

describe('lastUsedAt of a server token', () => {
  let fixture: AuthFixture;
  beforeAll(async () => {
    fixture = await startAuth();
  });
  afterAll(() => fixture.stop());

  async function withToken() {
    const { asAdmin } = await fixture.withSecurityAdmin();
    const { value: bearer } = await fixture.auth.createServerToken({ name: 'used' }, asAdmin());
    return {
      bearer,
      use: () => fixture.authenticate({ bearer }),
      lastUsedAt: async () =>
        (await fixture.auth.listServerTokens({ pageSize: 0, afterId: '' }, asAdmin())).serverTokens[0]!.lastUsedAt,
      now: () => isoTime(fixture.clock.now()),
    };
  }

  it('is in the store when the first request returns', async () => {
    const { use, lastUsedAt, now } = await withToken();
    expect(await lastUsedAt()).toBeUndefined();
    await use();
    expect(await lastUsedAt()).toBe(now());
  });

  it('is in the store when the first requests of several tokens in one turn return', async () => {
    const tokens = [await withToken(), await withToken()];
    const together = await fixture.decideTogether(...tokens.map(({ bearer }) => ({ bearer })));
    expect(together).toEqual([{ askAlone: true }, { askAlone: true }]);
    for (const { lastUsedAt, use, now } of tokens) {
      expect(await lastUsedAt()).toBeUndefined();
      expect((await use())[0]!.principal).toBeDefined();
      expect(await lastUsedAt()).toBe(now());
    }
    const again = await fixture.decideTogether(...tokens.map(({ bearer }) => ({ bearer })));
    expect(again.map(({ principal }) => principal?.kind)).toEqual(['SERVER_TOKEN', 'SERVER_TOKEN']);
  });

  it('is set to the latest use by the job', async () => {
    const { use, lastUsedAt, now } = await withToken();
    await use();
    for (let n = 0; n < 3; n++) {
      fixture.clock.advance(1_000);
      await use();
    }
    expect((await fixture.running.runJob('last-used')).ran).toBe(true);
    expect(await lastUsedAt()).toBe(now());
  });

  it('is written when the process stops', async () => {
    const { use, lastUsedAt, now } = await withToken();
    await use();
    fixture.clock.advance(1_000);
    await use();
    await fixture.restart();
    expect(await lastUsedAt()).toBe(now());
  });

  it('stays in memory when it could not be written, unless the token is used again meanwhile', async () => {
    const lastUsed = makeLastUsed();
    lastUsed.note({ tokenId: 'idle', at: isoTime(1) });
    lastUsed.note({ tokenId: 'busy', at: isoTime(2) });
    const failing = {
      markUses: async () => {
        lastUsed.note({ tokenId: 'busy', at: isoTime(3) });
        throw new Error('disk full');
      },
    };
    await expect(flushLastUsed({ lastUsed, tokenLookup: failing as never })).rejects.toThrow('disk full');
    expect(lastUsed.drain()).toEqual([
      { tokenId: 'busy', at: isoTime(3) },
      { tokenId: 'idle', at: isoTime(1) },
    ]);
    expect(lastUsed.drain()).toEqual([]);
  });
});
