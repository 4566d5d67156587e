import type { Agent, AgentVersion } from 'proto/agents/v1/agents.ts';
import type { AgentRecord, AgentVersionRecord } from './store.ts';

export const agentMessage = ({
  name,
  state,
  latestVersion,
  publishedVersion,
  createdAt,
  updatedAt,
  runnable,
}: AgentRecord): Agent => ({
  name,
  state,
  latestVersion,
  publishedVersion: publishedVersion ?? undefined,
  createdAt,
  updatedAt,
  runnable,
});

export const agentVersionMessage = ({
  version,
  hash,
  createdBy,
  createdAt,
}: Omit<AgentVersionRecord, 'definition'>): AgentVersion => ({ version, hash, createdBy, createdAt });
