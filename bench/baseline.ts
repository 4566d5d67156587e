import fastify from 'fastify';
import { newId } from 'platform/core/ids.ts';
import { openSqliteStore } from 'platform/store/sqlite/store.ts';
import { collection, insert, type OrganizationDocument } from 'platform/store/store.ts';

/**
 * The baselineProcess baseline: fastify on the same store, no token, no gRPC, no rules. Prints its address when it is
 * full.
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

const [folder, count] = process.argv.slice(2) as [string, string];
const organizationId = newId();
const typeId = newId();
const { store } = await openSqliteStore(`${folder}/baseline.db`, [ITEMS]);
const item = (key: string): Item => ({
  _id: newId(),
  organizationId,
  typeId,
  key,
  content: JSON.stringify({
    name: `name of ${key}`,
    tags: ['a', 'b', 'c'],
    score: 4.5,
    nested: { active: true, note: null },
  }),
  createdAt: new Date().toISOString(),
});
const first = item('key-0');
await store.apply(organizationId, [insert(ITEMS, first)]);
for (let from = 1; from < Number(count); from += 500) {
  await Promise.all(
    Array.from({ length: Math.min(500, Number(count) - from) }, (_, i) =>
      store.apply(organizationId, [insert(ITEMS, item(`key-${from + i}`))]),
    ),
  );
}

const view = ({ _id, content, ...rest }: Item): object => ({ id: _id, ...rest, content: JSON.parse(content) });
const server = fastify();
server.get('/get', async () => view((await store.findOne(organizationId, ITEMS, { _id: first._id })) as Item));
server.get('/list', async () => ({
  items: (await store.find(organizationId, ITEMS, { typeId }, { sort: [['createdAt', 'desc']], limit: 20 })).map(view),
}));
server.post<{ Body: { key: string } }>('/create', async (request, reply) => {
  const created = item(request.body.key);
  await store.apply(organizationId, [insert(ITEMS, created)]);
  return reply.code(201).send(view(created));
});
// the least that a run costs: one write before the work and one after it
server.post<{ Body: { key: string } }>('/run', async (request) => {
  const id = newId();
  await store.apply(organizationId, [insert(ITEMS, item(`run-${id}`))]);
  await store.apply(organizationId, [insert(ITEMS, item(`done-${id}`))]);
  return { success: true, output: request.body };
});
process.stdout.write(`baseline at ${await server.listen({ port: 0, host: '127.0.0.1' })}\n`);
process.on('disconnect', () => process.exit(0));
