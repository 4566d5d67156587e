import { JobServiceService } from 'proto/platform/v1/jobs.ts';
import { ServiceError } from 'platform/core/errors.ts';
import { operator, OPERATOR, startProgram, type RunningProgram } from 'platform/service/testing.ts';
import type { Program, ServiceStore } from 'platform/service/program.ts';
import { collection, insert, type Collection } from 'platform/store/store.ts';

interface Person {
  _id: string;
  organizationId: string;
  name: string;
}
const OLD = collection<Person>('people', { scope: 'organization' });
const NEW = collection<Person & { upper: string }>('people', {
  scope: 'organization',
  version: 2,
  upgrades: { 1: ({ name }: Person) => ({ upper: name.toUpperCase() }) },
});

type TestProgram = Program<Record<string, never>, ServiceStore>;
const programWith = (openDeps: TestProgram['openDeps']): TestProgram => ({
  name: 'memory',
  config: {},
  calls: [],
  publishes: [],
  outbox: 'own',
  openDeps,
  services: () => [],
  jobs: () => [],
});

describe('a service', () => {
  let running: RunningProgram | undefined;
  afterEach(async () => {
    await running?.stop();
    running = undefined;
  });

  it("identifies its callers although its store's time differs from the machine's clock", async () => {
    const twentyMinutesAhead = { now: () => Date.now() + 20 * 60_000 };
    const service = (running = await startProgram(
      programWith(({ openStore }) => openStore([])),
      {},
      twentyMinutesAhead,
    ));
    await expect(
      service.client(JobServiceService, OPERATOR).listJobs({}, service.as(operator())),
    ).resolves.toMatchObject({ jobs: [{ name: 'cut-back-log' }] });
  });

  it('with a new document version upgrades the stored documents by a job', async () => {
    let people = OLD as unknown as Collection<never>;
    let opened: ServiceStore;
    const service = (running = await startProgram(
      programWith(async ({ openStore }) => (opened = await openStore([people]))),
    ));
    const jobs = async () =>
      (await service.client(JobServiceService, OPERATOR).listJobs({}, service.as(operator()))).jobs.map(
        ({ name }) => name,
      );
    await opened!.store.apply('A', [insert(OLD, { _id: '1', organizationId: 'A', name: 'Ada' })]);
    expect(await jobs()).toEqual(['cut-back-log']);
    people = NEW;
    await service.restart();
    expect(await jobs()).toEqual(['cut-back-log', 'migrate']);
    await service.runJob('migrate');
    // `count` sees the stored document; a read would upgrade it.
    expect(await opened!.store.count('A', NEW, { upper: 'ADA' })).toBe(1);
  });

  it('that stops ends the calls, then the work that is left, then publishes what they have written', async () => {
    const steps: string[] = [];
    const step = async (name: string) => void steps.push(name);
    const service = (running = await startProgram({
      ...programWith(({ openStore }) => openStore([])),
      jobs: () => [{ name: 'relay', description: 'Publishes.', run: () => step('relay').then(() => 0) }],
      interrupt: () => step('interrupt'),
      close: () => step('close'),
    }));
    await service.stop();
    expect(steps).toEqual(['interrupt', 'relay', 'close']);
  });

  it('whose engine fails at the start reports it in one sentence', async () => {
    const cause = new Error('connection 7 timed out\nat some depth');
    const starting = startProgram(
      programWith(() =>
        Promise.reject(new ServiceError('UNAVAILABLE', 'The document store is not available', { cause })),
      ),
    );
    await expect(starting).rejects.toMatchObject({
      name: 'StartError',
      message: 'The document store is not available (connection 7 timed out)',
    });
  });

  it('that has a bug at the start rejects with the original error', async () => {
    const bug = new TypeError('x is not a function');
    await expect(startProgram(programWith(() => Promise.reject(bug)))).rejects.toBe(bug);
  });
});
