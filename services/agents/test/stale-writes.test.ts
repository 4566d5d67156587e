import { hashToken } from 'platform/core/bearer-token.ts';
import { auditEntryOp } from 'platform/events/outbox.ts';
import { ExpectationFailedError } from 'platform/store/store.ts';
import type { AgentRecord } from '../src/definitions/store.ts';
import { definitionOf } from './fixture.ts';
import { LIMITS } from './runtimes/runners/pool-fixture.ts';
import { simulateProcesses, type Simulation } from './simulated-processes.ts';

type Write = (definitions: Simulation['healthy']['definitions'], agent: AgentRecord) => Promise<void>;

const audit = ({ organizationId }: AgentRecord) =>
  auditEntryOp({
    ...{ source: '/agents', organizationId, action: 'test', outcome: 'success', requestId: '' },
    ...{ actor: { kind: 'operator', id: 'x', name: 'x', via: '' }, time: '2030-01-01T00:00:00.000Z' },
  });
const retire: Write = (definitions, agent) => definitions.change(agent, { state: 'retired' }, audit(agent));
const addVersion: Write = async (definitions, agent) => {
  const { organizationId, name, latestVersion } = agent;
  const first = (await definitions.versionByNumber(organizationId, name, 1))!;
  const version = { ...first, _id: `${first._id}-${agent.revision}-${latestVersion + 1}`, version: latestVersion + 1 };
  return definitions.addVersion(agent, version, audit(agent));
};

it.each<[string, string, Write, Write]>([
  ['is not changed', 'changed', retire, retire],
  ['is not changed', 'given another version', addVersion, retire],
  ['gets no version', 'changed', retire, addVersion],
])('an agent %s when it was %s since it was read', async (_write, _change, change, write) => {
  const { healthy, organizationId, publish, close } = await simulateProcesses();
  await publish(definitionOf('mine', '1'));
  const { definitions } = healthy;
  const agent = (await definitions.byName(organizationId, 'mine'))!;
  await change(definitions, agent);
  await expect(write(definitions, agent)).rejects.toThrow(ExpectationFailedError);
  await close();
});

it('calls with a callback token are not counted when others were counted since it was read', async () => {
  const simulation = await simulateProcesses();
  const { callbackTokens } = simulation.healthy;
  await simulation.publish(definitionOf('mine', '1'));
  await simulation.run(simulation.healthy, 'mine');
  const [execution] = await simulation.records();
  const tools = { memory: { types: ['Note'] } };
  const { token } = await callbackTokens.issue(execution!, tools, { ...LIMITS, wallMs: 60_000, maxToolCalls: 10 });
  const record = (await callbackTokens.byHash(hashToken(token)))!;
  await callbackTokens.count(record, 6);
  await expect(callbackTokens.count(record, 6)).rejects.toThrow(ExpectationFailedError);
  await simulation.close();
});
