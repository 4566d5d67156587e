import type { ProcessName } from 'platform/core/processes.ts';
import { eventually } from 'platform/service/test-end.ts';
import { pause } from '../../dev-servers/src/pause.ts';
import { isGone } from '../../dev-servers/src/process-state.ts';
import {
  DEGRADATION_TENANT,
  documentedStatuses,
  expectStatuses,
  repliesToAll,
  requestsOfAllEndpoints,
  type Fault,
} from '../support/degradation.ts';
import { untilAvailable } from '../support/request.ts';
import { ROUTES } from '../support/routes.ts';
import { startStack, type Stack } from '../support/stack.ts';
import type { Tenant } from '../support/tenant.ts';

const LONG_MS = 600_000;
const SERVICES: ProcessName[] = ['auth', 'agents', 'memory', 'credits'];
const CASES = SERVICES.flatMap((name) => (['killed', 'paused'] as const).map((fault) => ({ name, fault })));

let stack: Stack;
let tenant: Tenant;
beforeAll(async () => {
  stack = await startStack({ replicas: 1 });
  tenant = await stack.tenant(DEGRADATION_TENANT);
});
afterAll(() => stack.stop());

/** Does the work while the service does not, and lets it work again. */
async function whileDown(name: ProcessName, fault: Fault, work: () => Promise<void>): Promise<void> {
  const pid = stack.pidOf(name);
  if (fault === 'paused') {
    await pause(pid);
    return work().finally(() => process.kill(pid, 'SIGCONT'));
  }
  // the launcher would start it again at once
  const launcher = stack.launcher.pid as number;
  await pause(launcher);
  process.kill(pid, 'SIGKILL');
  await eventually(() => isGone(pid));
  const printed = stack.output().length;
  await work().finally(() => process.kill(launcher, 'SIGCONT'));
  await eventually(() => stack.output().slice(printed).includes(`${name} is back`));
}

describe('while a service does not work', () => {
  it.each(CASES)(
    '$name $fault: every endpoint answers as ARCHITECTURE.md says, and works again without a restart of the others',
    async ({ name, fault }) => {
      const requests = await requestsOfAllEndpoints(tenant, stack.baseUrl);
      await whileDown(name, fault, async () => {
        const expected = documentedStatuses(name, fault);
        const replies = await repliesToAll(requests, expected);
        expectStatuses(replies, expected);
        if (name === 'credits') expect(replies.get('GET /api/auth/whoami')?.body.credits).toBeNull();
      });
      // No request needs Kafka, so its column has what each is answered when all works.
      const normal = documentedStatuses('Kafka', 'killed');
      const again = await requestsOfAllEndpoints(tenant, stack.baseUrl);
      for (const [endpoint, send] of again)
        expect([endpoint, (await untilAvailable(send)).status]).toEqual([endpoint, normal[endpoint]]);
    },
    LONG_MS,
  );

  it('the table has every route', () => {
    const documented = Object.keys(documentedStatuses('auth', 'killed'));
    for (const { verb, template } of ROUTES)
      expect(documented).toContain(`${verb} ${template.replaceAll(/\{\w+\}/g, '{id}')}`);
  });
});
