import { BinaryWriter } from '@bufbuild/protobuf/wire';
import { CancelAgentExecutionResponse } from 'proto/agents/v1/agents.ts';
import { ReserveResponse } from 'proto/credits/v1/credits.ts';
import { CreateMemoryObjectResponse, UpdateMemoryTypeResponse } from 'proto/memory/v1/memory.ts';
import { DiagnosisServiceService } from 'proto/platform/v1/diagnosis.ts';
import { JobServiceService } from 'proto/platform/v1/jobs.ts';
import { Principal } from 'proto/platform/v1/principal.ts';
import { clientOf, openConnection, type AnyCall } from 'platform/rpc/client.ts';
import { openIdentity, type Identity } from 'platform/rpc/identity.ts';
import { createKeys, identityFilesOf } from 'platform/rpc/keys.ts';
import { operator, temporaryFolder } from 'platform/service/testing.ts';
import { startJobServer, type JobServer } from './job-server.ts';

const OPERATOR = 'operator:test';
/** Of no field and no value in this release. */
const LATER = 999;

/** The message as a later release sends it: with one more field, and a value of an enum that is new there. */
function fromLater<M>(codec: { encode(message: M): BinaryWriter }, message: M, enumField: number): Uint8Array {
  const writer = codec.encode(message);
  writer.uint32(LATER * 8 + 2).string('of a later release');
  return writer
    .uint32(enumField * 8)
    .int32(LATER)
    .finish();
}

describe('what a process of a later release sends', () => {
  it.each([
    ['CancelAgentExecution', CancelAgentExecutionResponse, 2],
    ['Reserve', ReserveResponse, 1],
    ['CreateMemoryObject', CreateMemoryObjectResponse, 2],
    ['UpdateMemoryType', UpdateMemoryTypeResponse, 3],
  ] as const)('is read without what is new: a reply of %s', (_name, codec, enumField) => {
    const known = codec.decode(new Uint8Array());
    const read = codec.decode(fromLater(codec as never, known, enumField));
    expect(read).toEqual({ ...known, outcome: 'UNRECOGNIZED' });
  });

  it('is read without what is new: a principal, who may then do nothing', () => {
    const read = Principal.decode(fromLater(Principal, { ...operator(), organizationId: 'A' }, 1));
    expect(read).toEqual({ ...operator(), organizationId: 'A', kind: 'UNRECOGNIZED' });
  });
});

describe('a service of an earlier release', () => {
  const folder = temporaryFolder();
  let service: JobServer;
  const open = (name: string): Identity => openIdentity({ name, ...identityFilesOf(folder.path, name) });
  const identities: Identity[] = [];
  beforeAll(async () => {
    await createKeys(folder.path, ['memory', OPERATOR]);
    identities.push(open('memory'), open(OPERATOR));
    service = await startJobServer(identities[0]!);
  });
  afterAll(async () => {
    await service.drain(0);
    for (const identity of identities) identity.close();
    folder.remove();
  });

  describe.each(['streams', 'unary calls'] as const)('called by %s', (carriedBy) => {
    let call: AnyCall;
    let close: () => void;
    beforeAll(() => {
      ({ call, close } = openConnection({
        ...{ address: service.address, audience: 'memory', identity: identities[1]!, carriedBy },
      }));
    });
    afterAll(() => close());
    const options = { principal: operator(), requestId: 'test' };

    it('answers 503 for a method that it does not have, since nothing was done and another replica may have it', () =>
      expect(clientOf(DiagnosisServiceService, call).diagnose({}, options)).rejects.toMatchObject({
        ...{ reason: 'UNAVAILABLE', message: 'The service is of a release that does not have this method' },
      }));

    it('takes fields that it does not know', () => {
      const { listJobs } = JobServiceService;
      const requestSerialize = (): Buffer =>
        Buffer.from(
          new BinaryWriter()
            .uint32(LATER * 8 + 2)
            .string('of a later release')
            .finish(),
        );
      return expect(call({ ...listJobs, requestSerialize }, {}, options)).resolves.toEqual({ jobs: [] });
    });

    it('refuses a request that it cannot read, and answers the next one', async () => {
      const { runJob } = JobServiceService;
      const requestSerialize = (): Buffer => Buffer.from([0x0a, 0x7f]);
      await expect(call({ ...runJob, requestSerialize }, {}, options)).rejects.toMatchObject({ reason: 'INTERNAL' });
      expect(await clientOf(JobServiceService, call).listJobs({}, options)).toEqual({ jobs: [] });
    });
  });
});
