import type { Agent as AgentMessage, AgentVersion as AgentVersionMessage } from 'proto/agents/v1/agents.ts';
import type { Agent, AgentVersion } from './store.ts';

export const agentMessage = ({
  name,
  state,
  latestVersion,
  publishedVersion,
  createdAt,
  updatedAt,
}: Agent): AgentMessage => ({
  name,
  state,
  latestVersion,
  publishedVersion: publishedVersion ?? undefined,
  createdAt,
  updatedAt,
});

export const versionMessage = ({
  version,
  hash,
  definition,
  createdBy,
  createdAt,
}: AgentVersion): AgentVersionMessage => ({ version, hash, definition, createdBy, createdAt });
