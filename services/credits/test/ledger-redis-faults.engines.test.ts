import { readFileSync } from 'node:fs';
import { DAY_MS, HOUR_MS } from 'platform/core/clock.ts';
import { allRows, faultsOf } from './ledger-invariants.ts';
import { ada, withLedger, organizationWith } from './ledger-harness.ts';
import { deleteKeys } from '../../../test/support/shared-engines.ts';
import { keysIn, redisHarness, snapshotOf, type RedisHarness } from './redis-harness.ts';

const LOST = { reason: 'UNAVAILABLE', message: expect.stringContaining('npm run admin -- credits rebuild') };

describe('the ledger on Redis', () => {
  const context = withLedger(() => redisHarness());
  const harness = () => context.harness as RedisHarness;
  const ledger = () => harness().opened.ledger;
  const keysOf = (organizationId: string) => keysIn(harness(), organizationId);
  const snapshot = (organizationId: string) => snapshotOf(harness(), organizationId);
  const mirrorAll = async (organizationId: string): Promise<void> => {
    while (await harness().opened.mirroring!.mirror(organizationId));
  };

  it('writes only after its last decision', () => {
    const script = readFileSync(new URL('../src/ledger/redis/ledger.lua', import.meta.url), 'utf8').replaceAll(
      /--.*$/gm,
      '',
    );
    const calls = [...script.matchAll(/redis\.call\((?:'(\w+)'|(unpack\(write\)))/g)];
    expect(calls).toHaveLength([...script.matchAll(/redis\.p?call/g)].length);
    const firstWrite = calls.findIndex(
      ([, name, write]) => write || !['TIME', 'HMGET', 'ZRANGEBYSCORE', 'XRANGE', 'ZRANGE'].includes(name!),
    );
    expect(calls[firstWrite]![2]).toBe('unpack(write)');
    expect(calls.slice(firstWrite).map(([, name]) => name)).toEqual([undefined, 'ZRANGE', 'ZADD', 'ZREM']);
    expect(script.slice(calls[firstWrite]!.index)).not.toMatch(/error|assert|reject|text\(/);
  });

  it('loads the script again when the server has lost it', async () => {
    const { organization } = context;
    await harness().redis.script('FLUSH');
    const ids = Array.from({ length: 5 }, () => organization.freshId());
    expect(await Promise.all(ids.map((id) => organization.reserve(id, 10)))).toMatchObject(
      Array(5).fill({ outcome: 'RESERVED' }),
    );
    expect(await organization.balances()).toEqual([50, 50, 0]);
  });

  it('holds amounts up to 2^53-1 to the last micro-credit', async () => {
    const { organization } = context;
    for (let i = 0; i < 9; i++) await organization.grant(organization.freshId(), 1e15 - (i === 8 ? 100 : 0));
    const rest = Number.MAX_SAFE_INTEGER - 9e15;
    expect(await organization.grant(organization.freshId(), rest + 1)).toEqual({ outcome: 'ACCOUNT_FULL' });
    expect(await organization.grant(organization.freshId(), rest)).toMatchObject({
      account: { availableMicros: Number.MAX_SAFE_INTEGER, grantedMicros: Number.MAX_SAFE_INTEGER },
    });
    const id = organization.freshId();
    await organization.reserve(id, 1e15 - 1);
    await organization.settle(id, 1e15 - 3);
    expect(await organization.balances()).toEqual([Number.MAX_SAFE_INTEGER - 1e15 + 3, 0, 1e15 - 3]);
    expect((await organization.rows())[0]).toMatchObject({
      availableDeltaMicros: 2,
      reservedDeltaMicros: 1 - 1e15,
      spentDeltaMicros: 1e15 - 3,
    });
  });

  it('lets keys of ended reservations and of grants expire after the window, and no key of an open one', async () => {
    const { organization, id } = context;
    const open = organization.freshId();
    await organization.reserve(open, 1);
    await organization.reserve(id, 1);
    await organization.settle(id, 1);
    const base = await keysOf(organization.organizationId);
    const ttl = await harness().redis.pttl(`${base}r:${id}`);
    expect(ttl).toBeGreaterThan(31 * DAY_MS);
    expect(ttl).toBeLessThanOrEqual(32 * DAY_MS);
    expect(await harness().redis.pttl(`${base}r:${open}`)).toBe(-1);
    for (const key of await harness().redis.keys(`${base}g:*`))
      expect(await harness().redis.pttl(key)).toBeGreaterThan(31 * DAY_MS);
  });

  it('trims mirrored rows from Redis, and still lists them', async () => {
    const { organization } = context;
    await Promise.all(Array.from({ length: 700 }, () => organization.reserve(organization.freshId(), 0)));
    const before = await allRows(ledger(), organization.organizationId);
    await mirrorAll(organization.organizationId);
    expect(await harness().redis.xlen(`${await keysOf(organization.organizationId)}rows`)).toBe(300);
    expect(await harness().opened.mirroring!.organizationsUnmirrored('', 1000)).not.toContain(
      organization.organizationId,
    );
    expect(await allRows(ledger(), organization.organizationId)).toEqual(before);
    expect((await organization.rows(405, 10)).map((row) => row.sequence)).toEqual([
      404, 403, 402, 401, 400, 399, 398, 397, 396, 395,
    ]);
    expect(await ledger().unrelayed(organization.organizationId, 1000)).toEqual(before);
  });

  it('mirrors every row once when two replicas do it at the same moment', async () => {
    const { organization } = context;
    const other = await harness().open();
    for (let round = 0; round < 10; round++) {
      await Promise.all(Array.from({ length: 20 }, () => organization.reserve(organization.freshId(), 0)));
      await Promise.all(
        [harness().opened, other, other].map((opened) => opened.mirroring!.mirror(organization.organizationId)),
      );
    }
    expect((await other.ledger.unrelayed(organization.organizationId, 1000)).map((row) => row.sequence)).toEqual(
      Array.from({ length: 201 }, (_, i) => i + 1),
    );
    await other.close();
  });

  it('rejects calls for an organization whose data Redis lost, serves others, and can rebuild it', async () => {
    const { organization, id } = context;
    const other = await organizationWith(harness(), 7);
    const settled = organization.freshId();
    await organization.reserve(settled, 20);
    await organization.settle(settled, 15);
    await organization.reserve(id, 30);
    await mirrorAll(organization.organizationId);
    const [before, rows] = [await organization.balance(), await organization.rows()];
    const grant = rows.at(-1)!;
    await deleteKeys(harness().redis, `${await keysOf(organization.organizationId)}*`);

    for (const restarted of [false, true]) {
      if (restarted) await harness().reopen();
      for (const call of [
        () => organization.reserve(organization.freshId(), 1),
        () => organization.balance(),
        () => organization.rows(),
        () => organization.settle(id, 1),
      ])
        await expect(call()).rejects.toMatchObject(LOST);
      expect(await other.reserve(other.freshId(), 1)).toMatchObject({ outcome: 'RESERVED' });
    }
    // the jobs continue with other organizations
    expect(await organization.expire()).toBe(0);
    expect(await ledger().unrelayed(organization.organizationId, 100)).toHaveLength(before.sequence);

    expect(await ledger().rebuild(organization.organizationId)).toEqual(before);
    expect(await organization.balance()).toEqual(before);
    expect(await organization.rows()).toEqual(rows);
    expect(await organization.reserve(id, 30)).toMatchObject({ outcome: 'RESERVED', state: 'OPEN' });
    expect(await organization.settle(settled, 99)).toEqual({
      outcome: 'FOUND',
      state: 'SETTLED',
      chargedMicros: 15,
      shortfallMicros: 0,
    });
    expect(await organization.grant(grant.id, 100)).toMatchObject({
      outcome: 'GRANTED',
      account: { grantedMicros: 100 },
    });
    await harness().advance(599_999);
    expect(await organization.extend(id, 1_000)).toMatchObject({ state: 'OPEN' });
    await harness().advance(HOUR_MS);
    expect(await organization.settle(id, 30)).toMatchObject({ state: 'SETTLED', chargedMicros: 30 });
    await mirrorAll(organization.organizationId);
    expect((await ledger().unrelayed(organization.organizationId, 100)).map((row) => row.sequence)).toEqual(
      Array.from({ length: before.sequence + 2 }, (_, i) => i + 1),
    );
  });

  it('rejects calls where rows fork from the mirror; a rebuild keeps only rows that continue it', async () => {
    const { organization, id } = context;
    await mirrorAll(organization.organizationId);
    const restore = await snapshot(organization.organizationId);
    const elsewhere = await harness().open();
    await elsewhere.ledger.reserve(
      organization.organizationId,
      { id, amountMicros: 40, ttlMs: HOUR_MS, maxOpen: 0 },
      ada,
    );
    await elsewhere.mirroring!.mirror(organization.organizationId);
    await elsewhere.close();
    await restore();
    // not verified again yet: this replica's next row takes the sequence of the one that was lost
    await expect(organization.reserve(organization.freshId(), 1)).resolves.toMatchObject({ outcome: 'RESERVED' });
    expect(await ledger().unrelayed(organization.organizationId, 10)).toHaveLength(2);
    // the job has found the fork and marked the ledger as lost
    await expect(organization.balance()).rejects.toMatchObject(LOST);
    await harness().reopen();
    await expect(organization.balance()).rejects.toMatchObject(LOST);
    expect(await ledger().rebuild(organization.organizationId)).toMatchObject({
      availableMicros: 60,
      reservedMicros: 40,
      sequence: 2,
    });
    expect(await organization.settle(id, 40)).toMatchObject({ chargedMicros: 40 });
  });

  it('rejects calls when Redis holds less than it acknowledged, even if nothing was mirrored', async () => {
    const { organization } = context;
    const restore = await snapshot(organization.organizationId);
    await organization.reserve(organization.freshId(), 1);
    await restore();
    await expect(organization.reserve(organization.freshId(), 1)).rejects.toMatchObject(LOST);
    await ledger().rebuild(organization.organizationId);
    expect(await organization.balances()).toEqual([100, 0, 0]);
  });

  it('rebuilds by script calls of bounded size: ended reservations and grants are restored in pieces', async () => {
    const { organization } = context;
    const ended = Array.from({ length: 1_300 }, () => organization.freshId());
    const open = Array.from({ length: 20 }, () => organization.freshId());
    const grants = Array.from({ length: 600 }, () => organization.freshId());
    await Promise.all([...ended, ...open].map((id) => organization.reserve(id, 0)));
    await Promise.all([
      ...ended.map((id) => organization.settle(id, 0)),
      ...grants.map((id) => organization.grant(id, 2)),
    ]);
    await mirrorAll(organization.organizationId);
    const before = await organization.balance();
    await deleteKeys(harness().redis, `${await keysOf(organization.organizationId)}*`);

    const monitor = await harness().redis.monitor();
    const scripts: { command: string; reservations?: { id: string; state: string }[]; grants?: { id: string }[] }[] =
      [];
    const replaced = Promise.withResolvers<void>();
    monitor.on('monitor', (_time: string, [name, , , ...rest]: string[]) => {
      if (name!.toLowerCase() !== 'evalsha' || !rest.at(-1)!.includes(organization.organizationId)) return;
      scripts.push(JSON.parse(rest.at(-1)!.replaceAll('\\\\', '\\')));
      if (scripts.at(-1)!.command === 'replace') replaced.resolve();
    });
    expect(await ledger().rebuild(organization.organizationId)).toEqual(before);
    await replaced.promise;
    monitor.disconnect();

    const pieces = scripts.filter(({ reservations, grants: some }) => reservations ?? some);
    for (const { reservations = [], grants: some = [] } of pieces)
      expect(reservations.length + some.length).toBeLessThanOrEqual(1_000);
    const sent = pieces.flatMap(({ reservations = [], grants: some = [] }) =>
      [...reservations, ...some].map((one) => one.id),
    );
    expect(sent.sort()).toEqual(
      [
        ...ended,
        ...open,
        ...grants,
        (await allRows(ledger(), organization.organizationId)).find((row) => row.sequence === 1)!.id,
      ].sort(),
    );
    expect(pieces.at(-1)!.reservations!.every(({ state }) => state === 'OPEN')).toBe(true);
    expect(pieces.at(-1)!.reservations).toHaveLength(open.length);
    expect(await Promise.all([ended[0]!, ended.at(-1)!].map((id) => organization.settle(id, 5)))).toMatchObject(
      Array(2).fill({ outcome: 'FOUND', state: 'SETTLED', chargedMicros: 0 }),
    );
    expect(await organization.reserve(open[0]!, 0)).toMatchObject({ outcome: 'RESERVED', state: 'OPEN' });
    for (const id of [grants[0]!, grants.at(-1)!])
      expect(await organization.grant(id, 3)).toEqual({ outcome: 'CONFLICT' });
  });

  it('loses nothing acknowledged when two replicas rebuild at once under load', async () => {
    const { organization } = context;
    await organization.grant(organization.freshId(), 1_000_000);
    const other = await harness().open();
    const acknowledged: string[] = [];
    let running = true;
    const load = Promise.all(
      [harness().opened, other].flatMap((opened) =>
        Array.from({ length: 4 }, async () => {
          const reasons: string[] = [];
          while (running) {
            const id = organization.freshId();
            const wanted = { id, amountMicros: 1, ttlMs: HOUR_MS, maxOpen: 0 };
            await opened.ledger.reserve(organization.organizationId, wanted, ada).then(
              () => acknowledged.push(id),
              (error: { reason: string }) => reasons.push(error.reason),
            );
          }
          return reasons;
        }),
      ),
    ).then((all) => all.flat());
    const done: PromiseSettledResult<unknown>[] = [];
    for (let round = 0; round < 10; round++)
      done.push(
        ...(await Promise.allSettled(
          [harness().opened, other].map((opened) => opened.ledger.rebuild(organization.organizationId)),
        )),
      );
    running = false;
    const reasons = new Set(await load);
    await other.close();
    for (const one of done) if (one.status === 'rejected') expect(one.reason).toMatchObject({ reason: 'CONFLICT' });
    expect([...reasons].filter((reason) => reason !== 'UNAVAILABLE')).toEqual([]);
    expect(done.filter((one) => one.status === 'fulfilled').length).toBeGreaterThanOrEqual(10);
    expect(acknowledged.length).toBeGreaterThan(20);
    const opened = new Set(
      (await allRows(ledger(), organization.organizationId))
        .filter((row) => row.kind === 'RESERVE')
        .map((row) => row.id),
    );
    expect(acknowledged.filter((id) => !opened.has(id))).toEqual([]);
  });

  it('doubles and loses nothing when connections break under load', async () => {
    const { organization } = context;
    await organization.grant(organization.freshId(), 1_000_000);
    const breaking = await harness().open({ timeoutMs: 60_000 });
    let broken = 0;
    let running = true;
    const breaker = (async () => {
      while (running) {
        const clients = String(await harness().redis.client('LIST'))
          .split('\n')
          .filter((line) => line.includes(` name=${harness().keyPrefix} `));
        for (const line of clients)
          broken += Number(await harness().redis.client('KILL', 'ID', /^id=(\d+)/.exec(line)![1]!));
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    })();
    const answers = await Promise.allSettled(
      Array.from({ length: 1_500 }, async (_, i) => {
        await new Promise((resolve) => setTimeout(resolve, i / 3));
        const id = organization.freshId();
        const reserved = await breaking.ledger.reserve(
          organization.organizationId,
          { id, amountMicros: 3, ttlMs: HOUR_MS, maxOpen: 0 },
          ada,
        );
        const settled = await breaking.ledger.settle(organization.organizationId, id, 2, ada);
        return [reserved, settled];
      }),
    );
    running = false;
    await breaker;
    await breaking.close();
    expect(broken).toBeGreaterThan(3);
    expect(answers.map((answer) => (answer.status === 'fulfilled' ? answer.value : String(answer.reason)))).toEqual(
      Array(1_500).fill([
        expect.objectContaining({ outcome: 'RESERVED' }),
        expect.objectContaining({ outcome: 'FOUND' }),
      ]),
    );
    expect(await organization.balances()).toEqual([1_000_100 - 3_000, 0, 3_000]);
    expect(await faultsOf(ledger(), organization.organizationId)).toEqual([]);
  });
});
