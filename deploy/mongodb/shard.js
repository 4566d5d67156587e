// Run this once on a sharded cluster, after the services have started for the first time:
//   mongosh "$MONGODB_URL" deploy/mongodb/shard.js
//
// Every query for a document of an organization names the organization. So the organization comes first in every shard
// key, and a request asks one shard.
// A unique index holds across shards only if it begins with the whole shard key:
// - where the fields of a unique index never change, the shard key is that index;
// - where they can change (names), the shard key is the organization alone: these collections hold few documents of
//   each organization;
// - elsewhere, the shard key is the organization and _id.
// So one large organization can spread over several shards where it has much data: objects, executions, ledger rows.
// Not sharded are the database of auth (tokens and e-mail addresses are unique across organizations), and outboxes and
// leases.
const PREFIX = process.env.MONGODB_DATABASE || 'agentmemory';
const ORGANIZATION = { organizationId: 1 };
const DOCUMENT = { organizationId: 1, _id: 1 };

const PLAN = {
  agents: {
    agents: ORGANIZATION,
    agent_versions: { organizationId: 1, agent: 1, version: 1 },
    executions: DOCUMENT,
    execution_payloads: DOCUMENT,
    callback_tokens: ORGANIZATION,
    run_keys: { organizationId: 1, key: 1 },
    secrets: ORGANIZATION,
    usage: DOCUMENT,
  },
  memory: {
    types: ORGANIZATION,
    objects: { organizationId: 1, key: 1, typeId: 1 },
    fences: DOCUMENT,
    references: DOCUMENT,
    type_changes: DOCUMENT,
    usage: DOCUMENT,
  },
  credits: {
    ledger_rows: { organizationId: 1, sequence: 1 },
    ledger_accounts: DOCUMENT,
  },
};

for (const [service, collections] of Object.entries(PLAN)) {
  const database = `${PREFIX}_${service}`;
  for (const [name, key] of Object.entries(collections)) {
    const collection = db.getSiblingDB(database).getCollection(name);
    const begins = ({ key: fields }) =>
      Object.keys(fields).join().concat(',').startsWith(Object.keys(key).join().concat(','));
    if (!collection.getIndexes().some(begins)) collection.createIndex(key);
    sh.shardCollection(`${database}.${name}`, key);
    print(`${database}.${name} by ${JSON.stringify(key)}`);
  }
}
