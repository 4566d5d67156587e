import { collection, insert, update, type Op, type OrganizationDocument, type Store } from 'platform/store/store.ts';
import type { AgentState } from './rules.ts';

/** A name and what it points at. Every write expects the revision that it read, so its handler goes in rounds. */
export interface Agent extends OrganizationDocument {
  name: string;
  state: AgentState;
  latestVersion: number;
  publishedVersion: number | null;
  /** `_id` of the published version. */
  publishedVersionId: string | null;
  /** Whether the published version is functional and needs no interactive tools. */
  runnable: boolean;
  revision: number;
  createdAt: string;
  updatedAt: string;
}

/** Immutable once written. */
export interface AgentVersion extends OrganizationDocument {
  agent: string;
  version: number;
  /** SHA-256 of the canonical document. */
  hash: string;
  /** The document as its author wrote it. */
  definition: string;
  createdBy: string;
  createdAt: string;
}

export const agents = collection<Agent>('agents', {
  scope: 'organization',
  indexes: [{ fields: ['name'], unique: true }],
});
export const agentVersions = collection<AgentVersion>('agent_versions', {
  scope: 'organization',
  indexes: [{ fields: ['agent', 'version'], unique: true }],
});

export type Definitions = ReturnType<typeof openDefinitions>;

export function openDefinitions(store: Store) {
  return {
    find: (organizationId: string, name: string) => store.findOne(organizationId, agents, { name }),
    /** All of them, by name. */
    list: (organizationId: string) => store.find(organizationId, agents, {}, { sort: [['name', 'asc']] }),
    /** Those that can be run through the API, by name. */
    listRunnable: (organizationId: string) =>
      store.find(organizationId, agents, { state: 'published', runnable: true }, { sort: [['name', 'asc']] }),
    findVersion: (organizationId: string, agent: string, version: number) =>
      store.findOne(organizationId, agentVersions, { agent, version }),
    /** By name of their agents. */
    findVersionsById: (organizationId: string, ids: readonly string[]) =>
      store.find(organizationId, agentVersions, { _id: { in: ids } }, { sort: [['agent', 'asc']] }),
    /** The newest first. */
    listVersions: (organizationId: string, agent: string, limit: number) =>
      store.find(organizationId, agentVersions, { agent }, { sort: [['version', 'desc']], limit }),

    /** The first version of a new name. */
    create: (agent: Agent, version: AgentVersion, audit: Op) =>
      store.apply(agent.organizationId, [insert(agents, agent), insert(agentVersions, version), audit]),
    /** A further version. */
    addVersion: (agent: Agent, version: AgentVersion, audit: Op) =>
      store.apply(agent.organizationId, [
        changed(agent, { latestVersion: version.version, updatedAt: version.createdAt }),
        insert(agentVersions, version),
        audit,
      ]),
    /** Publishes or retires. */
    change: (agent: Agent, changes: Partial<Agent>, audit: Op) =>
      store.apply(agent.organizationId, [changed(agent, changes), audit]),
  };
}

const changed = (agent: Agent, set: Partial<Agent>): Op =>
  update(
    agents,
    { _id: agent._id, organizationId: agent.organizationId, revision: agent.revision },
    { set, increment: { revision: 1 } },
  );
