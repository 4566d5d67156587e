import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DiagnosisServiceService } from 'proto/platform/v1/diagnosis.ts';
import { certificateFinding, commonChecks, diagnose, MAX_WAIT_MS, pending } from 'platform/service/diagnose.ts';
import { DAY_MS, isoTime } from 'platform/core/clock.ts';
import { eventOp, OUTBOX } from 'platform/events/outbox.ts';
import type { Program, ServiceStore } from 'platform/service/program.ts';
import { createKeys, identityFilesOf } from 'platform/rpc/keys.ts';
import { operator, OPERATOR, serverToken, startProgram, temporaryFolder } from 'platform/service/testing.ts';
import { openSqliteStore } from 'platform/store/sqlite/store.ts';

describe('the diagnosis of a replica', () => {
  it('reports what is wrong as findings, also a check that fails, and asks the others nevertheless', async () => {
    const program: Program<Record<string, never>, ServiceStore> = {
      name: 'memory',
      config: {},
      calls: [],
      publishes: ['memory.change.v1'],
      openDeps: ({ openStore }) => openStore([]),
      services: () => [],
      jobs: () => [],
      checks: () => [
        { name: 'moon', look: () => Promise.reject(new Error('the moon does not answer')) },
        { name: 'sun', look: async () => ({ fine: true, sentence: 'shines' }) },
      ],
    };
    const service = await startProgram(program);
    const client = service.client(DiagnosisServiceService, OPERATOR);
    const findings = async () => {
      const reply = await client.diagnose({}, service.as(operator()));
      expect(Number.isSafeInteger(reply.timeMs)).toBe(true);
      return reply.findings.map(({ name, fine, sentence }) => [name, fine, sentence]);
    };
    const sound = [
      ['release', true, expect.stringMatching(/^\d+\.\d+\.\d+$/)],
      ['certificate', true, expect.stringMatching(/^is good until \d{4}-\d\d-\d\d$/)],
      ['document store', true, 'SQLite answers'],
      ['event bus', true, 'SQLite answers'],
    ];
    const ofTheProgram = [
      ['moon', false, 'the moon does not answer'],
      ['sun', true, 'shines'],
    ];
    expect(await findings()).toEqual([...sound, ['pending events', true, 'none'], ...ofTheProgram]);

    await expect(client.diagnose({}, service.as(serverToken('A')))).rejects.toMatchObject({
      reason: 'UNAUTHENTICATED',
    });
    await service.stop();
  });

  it('calls work that waits for more than a minute wrong', () => {
    expect(pending(0, undefined)).toEqual({ fine: true, sentence: 'none' });
    expect(pending(3, Date.now())).toMatchObject({ fine: true });
    expect(pending(3, Date.now() - MAX_WAIT_MS - 1)).toMatchObject({ fine: false });
  });

  it('says how many events wait, since when, and that a bus does not answer', async () => {
    const folder = temporaryFolder();
    await createKeys(folder.path, ['memory']);
    const store = await openSqliteStore(join(folder.path, 'memory.db'), [OUTBOX]);
    const since = (ageMs: number) =>
      eventOp({
        topic: 'memory.change.v1',
        source: '/memory',
        type: 'memory.object.created.v1',
        organizationId: 'A',
        subject: 'objects/1',
        sequence: 1,
        time: isoTime(Date.now() - ageMs),
        data: {},
      });
    await store.platformStore.apply([since(2 * MAX_WAIT_MS), since(0)]);
    const cert = readFileSync(identityFilesOf(folder.path, 'memory').certFile, 'utf8');
    const checks = commonChecks(
      {
        identity: { context: () => ({ cert, key: '', ca: '' }) },
        platformStore: store.platformStore,
        bus: { check: () => Promise.reject(new Error('Kafka does not answer')) },
        engines: { store: 'SQLite', bus: 'Kafka' },
      },
      true,
    );
    const { findings } = await diagnose(checks);
    expect(findings.filter(({ fine }) => !fine)).toEqual([
      { name: 'event bus', fine: false, sentence: 'Kafka does not answer' },
      { name: 'pending events', fine: false, sentence: expect.stringMatching(/^2, the oldest since \d{3} s$/) },
    ]);
    await store.close();
    folder.remove();
  });

  it('names a check that rejects', async () => {
    const look = () => Promise.reject(new Error('no'));
    expect((await diagnose([{ name: 'one', look }])).findings).toEqual([{ name: 'one', fine: false, sentence: 'no' }]);
  });

  it('calls a certificate wrong that ends within two weeks', async () => {
    const folder = temporaryFolder();
    await createKeys(folder.path, ['memory']);
    const pem = readFileSync(identityFilesOf(folder.path, 'memory').certFile, 'utf8');
    expect(certificateFinding(pem).fine).toBe(true);
    const endsAt = new X509Certificate(pem).validToDate.getTime();
    expect(certificateFinding(pem, endsAt - 13 * DAY_MS)).toMatchObject({ fine: false });
    expect(certificateFinding(pem, endsAt + 1)).toMatchObject({
      fine: false,
      sentence: expect.stringMatching(/^ended /),
    });
    folder.remove();
  });
});
