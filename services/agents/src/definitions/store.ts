import { sharedInTurn } from 'platform/core/shared-in-turn.ts';
import { collection, insert, update, type Op, type OrganizationDocument, type Store } from 'platform/store/store.ts';
import type { AgentState } from './rules.ts';

/**
 * An agent's name and the version that it points to. Every write expects the revision that was read, so handlers read
 * and write inside `retryOnConflict`.
 */
export interface AgentRecord extends OrganizationDocument {
  name: string;
  state: AgentState;
  latestVersion: number;
  publishedVersion: number | null;
  /** `_id` of the published version. */
  publishedVersionId: string | null;
  /** Of a retired agent: the version that was published. Absent in what a release before wrote. */
  retiredVersion?: number | null;
  /** True when the published version is functional and needs no interactive tools. */
  runnable: boolean;
  revision: number;
  createdAt: string;
  updatedAt: string;
}

/** Immutable once written. */
export interface AgentVersionRecord extends OrganizationDocument {
  agent: string;
  version: number;
  /** SHA-256 of the canonical document, hexadecimal. */
  hash: string;
  /** The definition document as its author wrote it, JSON text. */
  definition: string;
  createdBy: string;
  createdAt: string;
}

export const AGENTS = collection<AgentRecord>('agents', {
  scope: 'organization',
  indexes: [{ fields: ['name'], unique: true }],
});
export const AGENT_VERSIONS = collection<AgentVersionRecord>('agent_versions', {
  scope: 'organization',
  columns: { definition: 'long' },
  indexes: [{ fields: ['agent', 'version'], unique: true }],
});

export type Definitions = ReturnType<typeof openDefinitions>;

export function openDefinitions(store: Store) {
  // Runs that arrive together are often of one agent.
  const byNameInTurn = sharedInTurn<AgentRecord | undefined>();

  return {
    byName: (organizationId: string, name: string): Promise<AgentRecord | undefined> =>
      byNameInTurn(organizationId, [name], () => store.findOne(organizationId, AGENTS, { name })),
    /** All agents in any state, sorted by name. */
    list: (organizationId: string) => store.find(organizationId, AGENTS, {}, { sort: [['name', 'asc']] }),
    /** The agents that can be run through the API, sorted by name. */
    listRunnable: (organizationId: string) =>
      store.find(organizationId, AGENTS, { state: 'published', runnable: true }, { sort: [['name', 'asc']] }),
    versionByNumber: (organizationId: string, agent: string, version: number) =>
      store.findOne(organizationId, AGENT_VERSIONS, { agent, version }),
    /** Sorted by the names of their agents. */
    versionsByIds: (organizationId: string, ids: readonly string[]) =>
      store.find(organizationId, AGENT_VERSIONS, { _id: { in: ids } }, { sort: [['agent', 'asc']] }),
    /** Newest first, without their definitions. */
    listVersions: (
      organizationId: string,
      agent: string,
      limit: number,
    ): Promise<Omit<AgentVersionRecord, 'definition'>[]> =>
      store.find(
        organizationId,
        AGENT_VERSIONS,
        { agent },
        { sort: [['version', 'desc']], limit, omit: ['definition'] },
      ),

    /** Writes a new agent with its first version. */
    create: (agent: AgentRecord, version: AgentVersionRecord, audit: Op) =>
      store.apply(agent.organizationId, [insert(AGENTS, agent), insert(AGENT_VERSIONS, version), audit]),
    /** Writes a further version of an agent. */
    addVersion: (agent: AgentRecord, version: AgentVersionRecord, audit: Op) =>
      store.apply(agent.organizationId, [
        updateOf(agent, { latestVersion: version.version, updatedAt: version.createdAt }),
        insert(AGENT_VERSIONS, version),
        audit,
      ]),
    /** Changes an agent, for example publishes or retires it. */
    change: (agent: AgentRecord, changes: Partial<AgentRecord>, audit: Op) =>
      store.apply(agent.organizationId, [updateOf(agent, changes), audit]),
  };
}

const updateOf = (agent: AgentRecord, set: Partial<AgentRecord>): Op =>
  update(
    AGENTS,
    { _id: agent._id, organizationId: agent.organizationId, revision: agent.revision },
    { set, increment: { revision: 1 } },
  );
