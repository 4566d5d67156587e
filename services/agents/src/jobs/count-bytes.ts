import { countBytesJob, type CountedCollection } from 'platform/jobs/count-bytes.ts';
import type { Job } from 'platform/jobs/jobs.ts';
import type { Deps } from '../deps.ts';
import { executionBytes, payloadBytes } from '../executions/rules.ts';
import {
  asRead,
  EXECUTION_PAYLOADS,
  EXECUTIONS,
  type ExecutionPayloadRecord,
  type ExecutionRecord,
} from '../executions/store.ts';

const executions: CountedCollection<ExecutionRecord> = { collection: EXECUTIONS, bytesOf: executionBytes, asRead };
const payloads: CountedCollection<ExecutionPayloadRecord> = {
  collection: EXECUTION_PAYLOADS,
  bytesOf: payloadBytes,
  // A payload changes once, at the end of its run.
  asRead: ({ _id, output, messages }) => ({ _id, messages, output: output === null ? null : { ne: null } }),
};

export const executionBytesJob = ({ platformStore, usage }: Pick<Deps, 'platformStore' | 'usage'>): Job =>
  countBytesJob({
    platformStore,
    counted: [executions, payloads],
    count: (organizationId, bytes, write) => usage.countStored(organizationId, bytes, write),
  });
