import { definitionOf, ENDLESS, startAgents, until, type Agents } from './fixture.ts';

describe('a run that waits for a runner', () => {
  let agents: Agents;
  beforeAll(async () => {
    agents = await startAgents({ env: { RUN_LEASE_MS: '300' } });
    await agents.publish(definitionOf('long', ENDLESS, { limits: { wallMs: 60_000, maxSteps: 1_000_000_000 } }));
  });
  afterAll(() => agents.service.stop());

  it('stays queued as long as it waits, and is running as soon as it has a runner', async () => {
    const [one, other] = [new AbortController(), new AbortController()];
    const idOf = async (status: string) =>
      (await agents.call('listAgentExecutions', { agent: 'long', status })).items[0]?.id;
    const run = (aborter: AbortController) =>
      agents.call('runAgent', { agentName: 'long', args: '{}' }, { signal: aborter.signal }).catch(() => undefined);
    const recordOf = async (id: string) => (await agents.deps().executions.byId(agents.organizationId, id))!;

    const first = run(one);
    await until(async () => (await idOf('running')) !== undefined);
    const second = run(other);
    await until(async () => (await idOf('queued')) !== undefined);
    const waiting = (await idOf('queued')) as string;
    const { leaseUntil } = await recordOf(waiting);
    await until(async () => (await recordOf(waiting)).leaseUntil !== leaseUntil);
    expect(await recordOf(waiting)).toMatchObject({ status: 'queued', startedAt: null });

    one.abort();
    await first;
    await until(async () => (await recordOf(waiting)).status === 'running');
    expect((await recordOf(waiting)).startedAt).not.toBeNull();
    other.abort();
    await second;
  });

  it('needs reservations that live longer than leases; otherwise the service does not start', async () => {
    await expect(startAgents({ env: { RUN_LEASE_MS: '5000', RESERVATION_TTL_MS: '5000' } })).rejects.toThrow(
      'RESERVATION_TTL_MS must be longer than RUN_LEASE_MS',
    );
  });

  it('needs room for all runners among the most runners; otherwise the service does not start', async () => {
    await expect(startAgents({ env: { RUNNERS: '3', RUNNERS_MAX: '2' } })).rejects.toThrow(
      'RUNNERS_MAX (2) must not be less than RUNNERS (3); set both',
    );
  });
});
