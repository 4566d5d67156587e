import fastify from 'fastify';
import { newId } from 'platform/core/ids.ts';
import { openSqliteStore } from 'platform/store/sqlite/store.ts';
import { collection, insert, type OrganizationDocument } from 'platform/store/store.ts';

/**
 * The least that the requests of the benchmarks cost: fastify on the same store, without token, gRPC, rules and events.
 * Sends its URL to its parent, and ends with it.
 */
interface Item extends OrganizationDocument {
  typeId: string;
  key: string;
  content: string;
  createdAt: string;
}
const ITEMS = collection<Item>('items', {
  scope: 'organization',
  indexes: [{ fields: ['typeId', 'key'], unique: true }, { fields: ['typeId', 'createdAt'] }],
});

const [folder] = process.argv.slice(2) as [string];
const organizationId = newId();
const typeId = newId();
const { store } = await openSqliteStore(`${folder}/baseline.db`, [ITEMS]);
const item = (key: string, content: object): Item => ({
  _id: newId(),
  organizationId,
  typeId,
  key,
  content: JSON.stringify(content),
  createdAt: new Date().toISOString(),
});
const view = ({ _id, content, ...rest }: Item): object => ({ id: _id, ...rest, content: JSON.parse(content) });

const server = fastify();
server.get<{ Params: { id: string } }>('/api/memory/objects/:id', async ({ params: { id } }, reply) => {
  const found = await store.findOne(organizationId, ITEMS, { _id: id });
  return found ? view(found) : reply.code(404).send({ error: 'Not found' });
});
server.get('/api/memory/objects', async () => ({
  items: (await store.find(organizationId, ITEMS, { typeId }, { sort: [['createdAt', 'desc']], limit: 20 })).map(view),
}));
server.post<{ Body: { key: string; content: object } }>('/api/memory/objects', async ({ body }, reply) => {
  const created = item(body.key, body.content);
  await store.apply(organizationId, [insert(ITEMS, created)]);
  return reply.code(201).send(view(created));
});
process.send!({ url: await server.listen({ port: 0, host: '127.0.0.1' }) });
process.on('disconnect', () => process.exit(0));
