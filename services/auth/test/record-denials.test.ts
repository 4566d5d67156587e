import { isoTime } from 'platform/core/clock.ts';
import { startAuth, type AuthFixture } from './fixture.ts';

describe('RecordDenials', () => {
  let fixture: AuthFixture;
  beforeAll(async () => {
    fixture = await startAuth();
  });
  afterAll(() => fixture.stop());

  it('puts what a gateway has refused into the audit trail of its organization, counted', async () => {
    const organizationId = await fixture.createOrganization();
    const denial = {
      organizationId,
      actorKind: 'server_token',
      actorId: 'token-id',
      actorName: 'nightly import',
      actorVia: '',
      code: 'rate_limited',
      method: '/memory.v1.MemoryService/ListMemoryTypes',
      requestId: 'request-1',
      time: isoTime(fixture.clock.now()),
      count: 40,
      methods: [] as string[],
    };
    const record = (count: number) =>
      fixture.gateway.recordDenials({ denials: [{ ...denial, count }] }, fixture.asGateway());
    await record(40);
    await record(2);
    // a gateway of the release before names no further methods
    const methods = [denial.method, '/memory.v1.MemoryService/GetMemoryType'];
    await fixture.gateway.recordDenials({ denials: [{ ...denial, count: 8, methods }] }, fixture.asGateway());
    const [entry] = await fixture.auditTrail(organizationId, (actions) => actions.includes('request.refused'));
    expect(entry).toMatchObject({
      action: 'request.refused',
      outcome: 'denied',
      actorKind: 'server_token',
      actorId: 'token-id',
      actorName: 'nightly import',
      targetType: 'method',
      targetId: denial.method,
      code: 'rate_limited',
      count: 50,
      changes: [{ field: 'methods', after: methods }],
      requestId: 'request-1',
    });
  });
});
