import { join } from 'node:path';
import { isoTime } from 'platform/core/clock.ts';
import { newId } from 'platform/core/ids.ts';
import { makeLog } from 'platform/core/log.ts';
import { openCounterShards } from 'platform/jobs/counter-shards.ts';
import { LEASES } from 'platform/jobs/lease.ts';
import { serverToken, temporaryFolder } from 'platform/service/testing.ts';
import { openTestStore } from '../../../test/support/shared-engines.ts';
import { COLLECTIONS } from '../src/deps.ts';
import { INTERRUPTED } from '../src/executions/rules.ts';
import { openExecutions, type ExecutionRecord } from '../src/executions/store.ts';
import { openUsage } from '../src/usage/store.ts';

it('a field that is added to an execution is written by its end, and by that of an interrupted one', async () => {
  const folder = temporaryFolder();
  const opened = await openTestStore(join(folder.path, 'agents.db'), [...COLLECTIONS, LEASES]);
  const log = makeLog('agents', 'silent');
  const counterShards = await openCounterShards(opened, { owner: newId(), leaseMs: 60_000, log });
  const leaseUntil = 4_102_444_800_000;
  const executions = openExecutions(opened.store, openUsage(opened.store, counterShards), async () => leaseUntil);
  const organizationId = newId();
  const create = async (): Promise<ExecutionRecord> => {
    const createdAt = isoTime(Date.now());
    const execution: ExecutionRecord = {
      ...{ _id: newId(), organizationId, sessionId: 's', agent: 'a', agentVersion: 1, status: 'queued', error: null },
      ...{ actor: { kind: 'service', id: 's', name: 's', via: '' }, chargeMicros: null, usage: null, requestId: 'r' },
      ...{ runKeyId: null, createdAt, startedAt: null, finishedAt: null, owner: 'o', epoch: 1, leaseUntil: null },
    };
    const payload = { _id: execution._id, organizationId, args: '{}', createdAt };
    await executions.create(execution, payload, undefined, serverToken(organizationId));
    return execution;
  };
  const added = { colour: 'red' };
  const times = { startedAt: isoTime(1), finishedAt: isoTime(2) };

  const finished = await create();
  const ended = { ...finished, ...times, ...added, status: 'succeeded', chargeMicros: 7, usage: { steps: 3 } } as const;
  expect(await executions.finish(ended, { output: '1', messages: '[]' }, [])).toBe(true);
  expect(await executions.byId(organizationId, finished._id)).toEqual({
    ...ended,
    leaseUntil,
    bytes: expect.any(Number),
  });

  const { _id } = await create();
  const abandoned = (await executions.byId(organizationId, _id))!;
  const interrupted = { ...abandoned, ...INTERRUPTED, ...added, chargeMicros: 0, finishedAt: isoTime(3) };
  expect(await executions.takeOver(abandoned, interrupted, [])).toBe(true);
  expect(await executions.byId(organizationId, _id)).toMatchObject({ ...added, status: 'interrupted', epoch: 2 });

  await counterShards.close();
  await opened.close();
  folder.remove();
});
