import {
  collection,
  insert,
  remove,
  update,
  type Filter,
  type Op,
  type OrganizationDocument,
  type PlatformStore,
  type Store,
} from 'platform/store/store.ts';
import { chained, START, type AuditFacts, type ChainedEntry } from './chain.ts';

/** One entry of the audit trail; one of a release without chains has no place in the chain. */
export interface AuditEntryRecord
  extends OrganizationDocument, AuditFacts, Partial<Pick<ChainedEntry, 'sequence' | 'previousHash' | 'hash'>> {}

/** Where the chain of an organization ends, and after which entry it begins. `_id` is the organization's id. */
export interface AuditHeadRecord extends OrganizationDocument {
  /** The newest entry. */
  sequence: number;
  hash: string;
  /** The newest of the entries that were removed after their retention; 0 and empty when none was. */
  startSequence: number;
  startHash: string;
}

export const AUDIT_ENTRIES = collection<AuditEntryRecord>('audit_entries', {
  scope: 'organization',
  columns: {
    ...{ _id: 'id', at: 'text', action: 'text', outcome: 'text', actorKind: 'text', actorId: 'long' },
    ...{ actorName: 'long', actorVia: 'long', targetType: 'long', targetId: 'long', code: 'long' },
    ...{ count: 'number', requestId: 'long', sequence: 'number', previousHash: 'text', hash: 'text' },
    changes: 'long',
  },
  // Between two that serve a query equally well the first is taken.
  indexes: [
    { fields: ['targetId', 'at'] },
    { fields: ['actorId', 'at'] },
    { fields: ['action', 'outcome', 'at'] },
    { fields: ['at'] },
    { fields: ['sequence'] },
  ],
  platformIndexes: [{ fields: ['sequence', 'at'], only: 'null' }],
});

export const AUDIT_HEADS = collection<AuditHeadRecord>('audit_heads', {
  scope: 'organization',
  columns: { _id: 'id', sequence: 'number', hash: 'text', startSequence: 'number', startHash: 'text' },
});

/** Before the id of every organization. */
export const NO_ID = '00000000-0000-0000-0000-000000000000';

/** Entries before one of them, which have all of these properties. */
export interface AuditEntriesQuery extends Filter<AuditEntryRecord> {
  readonly before?: Pick<AuditEntryRecord, 'at' | '_id'> | undefined;
  readonly limit: number;
}

export const openAuditEntries = (store: Store, platformStore: PlatformStore) => ({
  /**
   * Appends entries of any organizations to the chains of these, all or none; leaves out those that are there already.
   * @throws ExpectationFailedError, DuplicateKeyError when another writer was faster: nothing is written then
   */
  async append(entries: readonly AuditEntryRecord[]): Promise<void> {
    const byId = new Map(entries.map((entry) => [entry._id, entry]));
    for (const { _id } of await platformStore.find(AUDIT_ENTRIES, { _id: { in: [...byId.keys()] } })) byId.delete(_id);
    const byOrganization = Map.groupBy(byId.values(), ({ organizationId }) => organizationId);
    if (byOrganization.size === 0) return;
    const found = await platformStore.find(AUDIT_HEADS, { _id: { in: [...byOrganization.keys()] } });
    const heads = new Map(found.map((head) => [head._id, head]));
    const [headOps, entryOps]: [Op[], Op[]] = [[], []];
    for (const [organizationId, ofOrganization] of byOrganization) {
      const head = heads.get(organizationId);
      const links = chained(head ?? START, ofOrganization);
      const { sequence, hash } = links.at(-1)!;
      headOps.push(
        head
          ? update(
              AUDIT_HEADS,
              { _id: organizationId, organizationId, sequence: head.sequence, hash: head.hash },
              { set: { sequence, hash } },
            )
          : insert(AUDIT_HEADS, {
              ...{ _id: organizationId, organizationId, sequence, hash },
              ...{ startSequence: START.sequence, startHash: START.hash },
            }),
      );
      entryOps.push(...links.map((entry) => insert(AUDIT_ENTRIES, entry)));
    }
    // One after the other by kind: an engine may write those of one kind with one command.
    headOps.sort((a, b) => a.kind.localeCompare(b.kind));
    await platformStore.apply([...headOps, ...entryOps]);
  },

  head: (organizationId: string): Promise<AuditHeadRecord | undefined> =>
    store.findOne(organizationId, AUDIT_HEADS, { _id: organizationId }),

  /** In the order of the chain, after this number. */
  async chainAfter(organizationId: string, sequence: number, limit: number): Promise<ChainedEntry[]> {
    const filter = { sequence: { gt: sequence } };
    const entries = await store.find(organizationId, AUDIT_ENTRIES, filter, { sort: [['sequence', 'asc']], limit });
    return entries as ChainedEntry[];
  },

  /** Entries of a release without chains, oldest first, after this id. */
  unchainedAfter: (organizationId: string, afterId: string, limit: number): Promise<AuditEntryRecord[]> =>
    store.find(
      organizationId,
      AUDIT_ENTRIES,
      { sequence: null, ...(afterId !== '' && { _id: { gt: afterId } }) },
      { limit },
    ),

  countUnchained: (organizationId: string): Promise<number> =>
    store.count(organizationId, AUDIT_ENTRIES, { sequence: null }),

  byId: (organizationId: string, _id: string): Promise<AuditEntryRecord | undefined> =>
    store.findOne(organizationId, AUDIT_ENTRIES, { _id }),

  /** Newest first, by the time of what happened. */
  list: (organizationId: string, { before, limit, ...filter }: AuditEntriesQuery): Promise<AuditEntryRecord[]> =>
    store.find(organizationId, AUDIT_ENTRIES, filter, {
      sort: [['at', 'desc']],
      limit,
      ...(before && { after: [before.at, before._id] }),
    }),

  /** Removes up to `limit` entries of releases without chains, of all organizations; resolves to their number. */
  async removeUnchained(time: string, limit: number): Promise<number> {
    const filter = { sequence: null, at: { lt: time } };
    const old = await platformStore.find(AUDIT_ENTRIES, filter, { sort: [['at', 'asc']], limit });
    await platformStore.apply(old.map(({ _id }) => remove(AUDIT_ENTRIES, { _id }, { optional: true })));
    return old.length;
  },

  /** Of all organizations, by id; NO_ID is before the first. */
  headsAfter: (_id: string, limit: number): Promise<AuditHeadRecord[]> =>
    platformStore.find(AUDIT_HEADS, { _id: { gt: _id } }, { limit }),

  /**
   * Removes up to `limit` entries from before `time` at the beginning of a chain, up to the first that stays, and notes
   * the last of them as its start. Resolves to their number.
   */
  async cutChain(organizationId: string, time: string, limit: number): Promise<number> {
    const head = await store.findOne(organizationId, AUDIT_HEADS, { _id: organizationId });
    if (!head) return 0;
    const read = (count: number): Promise<AuditEntryRecord[]> =>
      store.find(
        organizationId,
        AUDIT_ENTRIES,
        { sequence: { gt: head.startSequence } },
        { sort: [['sequence', 'asc']], limit: count },
      );
    const [first] = await read(1);
    if (!first || first.at >= time) return 0;
    const entries = (await read(limit)) as ChainedEntry[];
    const kept = entries.findIndex(({ at }) => at >= time);
    const cut = kept === -1 ? entries : entries.slice(0, kept);
    const last = cut.at(-1)!;
    await store.apply(organizationId, [
      update(
        AUDIT_HEADS,
        { _id: organizationId, startSequence: head.startSequence },
        { set: { startSequence: last.sequence, startHash: last.hash } },
      ),
      ...cut.map(({ _id }) => remove(AUDIT_ENTRIES, { _id }, { optional: true })),
    ]);
    return cut.length;
  },
});
export type AuditEntries = ReturnType<typeof openAuditEntries>;
