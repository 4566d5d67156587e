import { newId } from 'platform/core/ids.ts';
import { expectError } from '../support/expect-error.ts';
import { sharedStack } from '../support/shared-stack.ts';
import type { RunningStack } from '../support/stack.ts';
import type { Tenant } from '../support/tenant.ts';

const COUNTS = { Alpha: 25, Beta: 3 };

let stack: RunningStack;
let tenant: Tenant;
const typeIds: Record<string, string> = {};
beforeAll(async () => {
  stack = await sharedStack();
  tenant = await stack.tenant();
  for (const [type, count] of Object.entries(COUNTS)) {
    typeIds[type] = (await tenant.request('POST', '/api/memory/types', { type, jsonSchema: {} })).body.id;
    for (let i = 1; i <= count; i++)
      await tenant.request('POST', '/api/memory/objects', { type, key: `key ${i}`, content: { i } });
  }
});

const list = (query = '') => tenant.request('GET', `/api/memory/objects${query}`);

describe('GET /api/memory/objects', () => {
  describe('200', () => {
    it('answers with total and twenty whole objects, newest first', async () => {
      const { status, body } = await list();
      expect([status, Object.keys(body), body.total, body.items.length]).toEqual([200, ['total', 'items'], 28, 20]);
      expect(Object.keys(body.items[0]).sort()).toEqual([
        'content',
        'createdAt',
        'id',
        'key',
        'revision',
        'schemaVersion',
        'type',
        'typeId',
        'updatedAt',
      ]);
      expect(body.items.slice(0, 4).map(({ type, key }: { type: string; key: string }) => `${type} ${key}`)).toEqual([
        'Beta key 3',
        'Beta key 2',
        'Beta key 1',
        'Alpha key 25',
      ]);
    });

    it.each<[string, () => string, number, number]>([
      ['type id', () => `?typeId=${typeIds.Beta}`, 3, 3],
      ['type id in upper case', () => `?typeId=${typeIds.Beta?.toUpperCase()}`, 3, 3],
      ['type name', () => '?type=Beta', 3, 3],
      ['type name in another case', () => '?type=bETA', 3, 3],
      ['key', () => '?key=key+2', 2, 2],
      ['key, percent-encoded', () => '?key=key%202', 2, 2],
      ['type and key', () => '?type=Alpha&key=key%2025', 1, 1],
      ['type and its id', () => `?type=Beta&typeId=${typeIds.Beta}`, 3, 3],
      ['an unknown type id', () => `?typeId=${newId()}`, 0, 0],
      ['an unknown type name', () => '?type=Gamma', 0, 0],
      ['an empty type name', () => '?type=', 0, 0],
      ['an unknown key', () => '?key=key', 0, 0],
      ['a type and the id of another', () => `?type=Alpha&typeId=${typeIds.Beta}`, 0, 0],
      ['a page of a filtered list', () => '?type=Alpha&page=2&pageSize=10', 25, 10],
      ['the last page', () => '?page=2', 28, 8],
      ['a page past the end', () => '?page=9', 28, 0],
      ['a page far past the end', () => '?page=1001&pageSize=100', 28, 0],
      ['the largest page', () => '?pageSize=100', 28, 28],
    ])('filters and pages with an exact total: %s', async (_what, query, total, count) => {
      const { status, body } = await list(query());
      expect([status, body.total, body.items.length]).toEqual([200, total, count]);
    });

    it('shows each object on exactly one page', async () => {
      const pages = await Promise.all([1, 2, 3, 4].map((page) => list(`?pageSize=7&page=${page}`)));
      expect(new Set(pages.flatMap(({ body }) => body.items.map(({ id }: { id: string }) => id))).size).toBe(28);
    });

    it('links to the next and the previous page with the same filters', async () => {
      const linksOf = (link: string | null): Record<string, string> =>
        Object.fromEntries([...(link ?? '').matchAll(/<([^>]+)>; rel="(\w+)"/g)].map(([, url, rel]) => [rel, url]));
      const queryOf = (url: string): string => {
        expect(url).toMatch(/^http:\/\/[^/]+\/api\/memory\/objects\?type=Alpha&pageSize=10&cursor=[\w-]+$/);
        return new URL(url).search;
      };
      const first = await list('?type=Alpha&pageSize=10&page=1');
      const second = await list(queryOf(linksOf(first.headers.get('link')).next!));
      const third = await list(queryOf(linksOf(second.headers.get('link')).next!));
      expect([first, second, third].map(({ body }) => [body.total, body.items.length])).toEqual([
        [25, 10],
        [25, 10],
        [25, 5],
      ]);
      expect(Object.keys(linksOf(third.headers.get('link')))).toEqual(['prev']);
      const back = await list(queryOf(linksOf(third.headers.get('link')).prev!));
      expect(back.body).toEqual(second.body);
      expect(first.headers.get('link')).not.toMatch(/rel="prev"/);
    });
    it('counts created and deleted objects on the next request', async () => {
      const { body } = await tenant.request('POST', '/api/memory/objects', { type: 'Beta', key: 'brief', content: {} });
      const during = [
        (await list()).body.total,
        (await list('?type=Beta')).body.total,
        (await list('?key=brief')).body.total,
      ];
      await tenant.request('DELETE', `/api/memory/objects/${body.id}`);
      expect([
        during,
        (await list()).body.total,
        (await list('?type=Beta')).body.total,
        (await list('?key=brief')).body.total,
      ]).toEqual([[29, 4, 1], 28, 3, 0]);
    });

    it('counts exactly under concurrent writes', async () => {
      const writer = await stack.tenant();
      const {
        body: { id: typeId },
      } = await writer.request('POST', '/api/memory/types', { type: 'Many', jsonSchema: {} });
      const created = await Promise.all(
        Array.from({ length: 40 }, (_, i) =>
          writer.request('POST', '/api/memory/objects', { typeId, key: String(i), content: {} }),
        ),
      );
      await Promise.all(
        created.slice(0, 15).map(({ body }) => writer.request('DELETE', `/api/memory/objects/${body.id}`)),
      );
      expect([
        created.every(({ status }) => status === 201),
        (await writer.request('GET', '/api/memory/objects?pageSize=1')).body.total,
      ]).toEqual([true, 25]);
    });

    it('returns a page of the largest objects', async () => {
      const heavy = await stack.tenant();
      await heavy.request('POST', '/api/memory/types', { type: 'Heavy', jsonSchema: {} });
      // quotes are escaped again in every JSON text that contains this text
      const text = '"'.repeat((262_144 - 20) / 2);
      for (let i = 0; i < 100; i += 10) {
        const replies = await Promise.all(
          Array.from({ length: 10 }, (_, j) =>
            heavy.request('POST', '/api/memory/objects', { type: 'Heavy', key: String(i + j), content: { text } }),
          ),
        );
        expect(replies.map(({ status }) => status)).toEqual(Array<number>(10).fill(201));
      }
      const { status, body } = await heavy.request('GET', '/api/memory/objects?pageSize=100');
      expect([
        status,
        body.total,
        body.items.every(({ content }: { content: { text: string } }) => content.text === text),
      ]).toEqual([200, 100, true]);
    });

    it('is empty for an organization without objects', async () => {
      expect((await (await stack.tenant()).request('GET', '/api/memory/objects')).body).toEqual({
        total: 0,
        items: [],
      });
    });
  });

  describe('400', () => {
    it.each([
      ...['0', '-1', '1.5', 'x', '', '01', '1e1', '99999999999'].flatMap((value) => [
        [`?page=${value}`, '/page'],
        [`?pageSize=${value}`, '/pageSize'],
      ]),
      ['?pageSize=101', '/pageSize'],
      ['?page=1002&pageSize=100', '/page'],
      ['?typeId=Alpha', '/typeId'],
      ['?typeId=', '/typeId'],
      ['?key=a&key=a', '/key'],
      ['?page=1&page=1', '/page'],
      ['?colour=red', '/colour'],
      ['?cursor=abc', '/cursor'],
      ['?__proto__=1', '/__proto__'],
    ])('rejects %s', async (query, at) => expectError(await list(query), 400, 'invalid_request', { at }));

    it.each(['?key=%ZZ', '?key=%00', '?key=%ff', '?%E0%A4%A=1'])('rejects %s', async (query) =>
      expectError(await list(query), 400, 'invalid_request'),
    );
  });
});
