import { join } from 'node:path';
import { startJobs, type Job } from 'platform/jobs/jobs.ts';
import { LEASES } from 'platform/jobs/lease.ts';
import { makeLog } from 'platform/core/log.ts';
import { openSqliteStore } from 'platform/store/sqlite/store.ts';
import { temporaryFolder } from 'platform/service/testing.ts';

const folder = temporaryFolder();
afterAll(() => folder.remove());

it('a job of every replica runs in each of two processes, a job with a lease in one of them', async () => {
  const { platformStore, close } = await openSqliteStore(join(folder.path, 'jobs.db'), [LEASES]);
  const job = { description: '', intervalMs: 3_600_000, run: async () => 1 };
  const jobs: Job[] = [
    { ...job, name: 'leased' },
    { ...job, name: 'everywhere', everyReplica: true },
  ];
  const runners = ['one', 'two'].map((owner) =>
    startJobs(jobs, { platformStore, owner, leaseMs: 60_000, log: makeLog('test', 'silent') }),
  );
  const ran = async (name: string) => {
    const rounds = [];
    for (const runner of runners) rounds.push((await runner.runNow(name)).ran);
    return rounds;
  };
  expect((await ran('leased')).filter(Boolean)).toHaveLength(1);
  expect(await ran('everywhere')).toEqual([true, true]);
  for (const runner of runners) await runner.stop();
  await close();
});
