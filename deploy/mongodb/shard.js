// mongosh "$MONGODB_URL" deploy/mongodb/shard.js     on a sharded cluster, once, after the services have started for the first time
//
// Every document that belongs to an organization is found by it, so the organization leads every shard key: a request asks one shard.
// A unique index holds across shards only if it begins with the whole shard key. Where its fields never change, the key is
// that index; where they do (names), it is the organization alone: those collections hold few documents of each.
// Elsewhere the key goes on with _id. So one large organization can spread over shards where it has much: objects, executions, ledger rows.
// Not sharded: the database of auth (tokens and e-mail addresses are unique across organizations), and outbox and leases.
const PREFIX = process.env.MONGODB_DATABASE || 'agentmemory';
const ORGANIZATION = { organizationId: 1 };
const DOCUMENT = { organizationId: 1, _id: 1 };

const PLAN = {
  agents: {
    agents: ORGANIZATION,
    agent_versions: { organizationId: 1, agent: 1, version: 1 },
    executions: DOCUMENT,
    execution_payloads: DOCUMENT,
    run_keys: { organizationId: 1, key: 1 },
  },
  memory: {
    types: ORGANIZATION,
    objects: { organizationId: 1, typeId: 1, key: 1 },
    fences: DOCUMENT,
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
