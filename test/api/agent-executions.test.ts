import { newId } from 'platform/core/ids.ts';
import { eventually } from 'platform/service/test-end.ts';
import { anyId, anyTime, expectError } from '../support/expect-error.ts';
import type { Reply } from '../support/request.ts';
import { sharedStack } from '../support/shared-stack.ts';
import type { RunningStack } from '../support/stack.ts';
import { expressionAgent, type Tenant } from '../support/tenant.ts';

const SUMMARY = [
  'actor',
  'agent',
  'agentVersion',
  'charge',
  'createdAt',
  'error',
  'finishedAt',
  'id',
  'sessionId',
  'startedAt',
  'status',
  'usage',
];
const WHOLE = [...SUMMARY, 'args', 'messages', 'output', 'requestId', 'traceId'].sort();
const AGENTS = [
  expressionAgent('good', '{ "got": $ }', { pricing: { base: 2, max: 3, perUnit: { steps: 0 } } }),
  expressionAgent('bad', '{ "a": $number("x") }'),
];

let stack: RunningStack;
let tenant: Tenant;
let runs: Reply[];
beforeAll(async () => {
  stack = await sharedStack();
  tenant = await stack.tenant({ credits: 100, agents: AGENTS });
  runs = [];
  for (const agentName of ['good', 'bad', 'good', 'good', 'bad'])
    runs.push(await tenant.request('POST', '/api/agent/run', { agentName, args: { n: runs.length } }));
});

const newestFirst = () => runs.map(({ body }) => body.agentExecutionId).reverse();
const idsOf = ({ body }: Reply): string[] => body.items.map(({ id }: { id: string }) => id);

describe('GET /api/agent/executions', () => {
  const list = (query = '') => tenant.request('GET', `/api/agent/executions${query}`);
  const nextOf = ({ headers }: Reply): string | undefined =>
    /^<([^>]+)>; rel="next"$/.exec(headers.get('link') ?? '')?.[1];

  describe('200', () => {
    it('lists newest first, without args, output and messages', async () => {
      const reply = await list();
      expect([reply.status, Object.keys(reply.body), idsOf(reply)]).toEqual([200, ['items'], newestFirst()]);
      expect(reply.body.items.map((item: object) => Object.keys(item).sort())).toEqual(runs.map(() => SUMMARY));
    });

    it('filters by agent, by status, and by both', async () => {
      const [good, failed, none] = [
        await list('?agent=good'),
        await list('?status=failed'),
        await list('?agent=good&status=failed'),
      ];
      expect([idsOf(good).length, idsOf(failed).length, idsOf(none)]).toEqual([3, 2, []]);
      expect(
        new Set(failed.body.items.map(({ agent, status }: { agent: string; status: string }) => `${agent} ${status}`)),
      ).toEqual(new Set(['bad failed']));
    });

    it('filters by the time at which they were recorded, page by page, too', async () => {
      const [, second, , fourth] = (await list()).body.items as { createdAt: string; id: string }[];
      const between = `since=${fourth!.createdAt}&until=${second!.createdAt}`;
      const whole = await list(`?${between}`);
      expect(idsOf(whole)).toEqual(newestFirst().slice(2, 4));
      expect(nextOf(whole)).toBeUndefined();
      const page = await list(`?${between}&pageSize=1`);
      const next = await tenant.request('GET', nextOf(page)!.slice(page.origin.length));
      expect([...idsOf(page), ...idsOf(next), nextOf(next)]).toEqual([...newestFirst().slice(2, 4), undefined]);
      expect(idsOf(await list('?until=2020-01-01T00:00:00Z'))).toEqual([]);
      expect(idsOf(await list('?since=2020-01-01T00:00:00%2B01:00'))).toEqual(newestFirst());
    });

    it('is empty for an unknown agent', async () => {
      expect((await list('?agent=nobody')).body).toEqual({ items: [] });
    });

    it('links to the next page with the same filters, up to the last page', async () => {
      const pages = [await list('?pageSize=2&agent=good')];
      for (let next = nextOf(pages[0]!); next !== undefined; next = nextOf(pages.at(-1)!)) {
        const { origin } = pages.at(-1)!;
        expect(next.startsWith(`${origin}/api/agent/executions?`)).toBe(true);
        pages.push(await tenant.request('GET', next.slice(origin.length)));
      }
      expect(pages.map((page) => idsOf(page).length)).toEqual([2, 1]);
      expect(pages.flatMap(idsOf)).toEqual(idsOf(await list('?agent=good')));
    });

    it('neither repeats nor skips a run when new ones are added between two pages', async () => {
      const first = await list('?pageSize=3');
      await tenant.request('POST', '/api/agent/run', { agentName: 'bad', args: {} });
      const second = await tenant.request('GET', (nextOf(first) as string).slice(first.origin.length));
      expect([...idsOf(first), ...idsOf(second)]).toEqual(newestFirst());
    });
  });

  describe('400', () => {
    it.each([
      ['an unknown status', '?status=done', '/status'],
      ['an unknown parameter', '?colour=red', '/colour'],
      ['a page number', '?page=1', '/page'],
      ['a repeated parameter', '?agent=a&agent=b', '/agent'],
      ['an invalid cursor', '?cursor=abc', '/cursor'],
      ['a time without a zone', '?since=2030-01-31T12:00:00', '/since'],
      ['a time that is none', '?until=yesterday', '/until'],
      ...['0', '-1', '101', '1.5', 'x', '', '1e1', '99999999999'].map((size) => [
        `pageSize "${size}"`,
        `?pageSize=${size}`,
        '/pageSize',
      ]),
    ])('rejects %s', async (_what, query, at) => expectError(await list(query), 400, 'invalid_request', { at }));
  });

  describe('403', () => {
    it('refuses a tier without the agent API', async () => {
      const starter = await stack.tenant({ tier: 'starter' });
      expectError(await starter.request('GET', '/api/agent/executions'), 403, 'tier_required');
      expectError(await starter.request('GET', `/api/agent/executions/${newId()}`), 403, 'tier_required');
    });
  });
});

describe('GET /api/agent/executions/{id}', () => {
  const get = (id: string, query = '') => tenant.request('GET', `/api/agent/executions/${id}${query}`);

  describe('200', () => {
    it('shows all fields of a successful run', async () => {
      const { sessionId, agentExecutionId, messages } = runs[2]!.body;
      const reply = await get(agentExecutionId);
      expect(Object.keys(reply.body).sort()).toEqual(WHOLE);
      expect(reply.body).toEqual({
        id: agentExecutionId,
        sessionId,
        agent: 'good',
        agentVersion: 1,
        status: 'succeeded',
        args: { n: 2 },
        output: { got: { n: 2 } },
        error: null,
        messages,
        actor: { kind: 'server_token', id: anyId, name: 'tests' },
        charge: 2,
        usage: expect.any(Object),
        createdAt: anyTime,
        startedAt: anyTime,
        finishedAt: anyTime,
        requestId: runs[2]!.headers.get('x-request-id'),
        traceId: null,
      });
    });

    it('shows all fields of a failed run', async () => {
      const { body } = await get(runs[1]!.body.agentExecutionId);
      expect(Object.keys(body).sort()).toEqual(WHOLE);
      expect(body).toMatchObject({
        status: 'failed',
        output: null,
        error: { code: 'agent_failed', message: expect.any(String) },
        charge: 0,
        messages: [],
      });
      expect(Object.keys(body.error).sort()).toEqual(['code', 'message']);
    });

    it('has createdAt, startedAt and finishedAt in this order', async () => {
      const {
        body: { createdAt, startedAt, finishedAt },
      } = await get(runs[0]!.body.agentExecutionId);
      expect([createdAt, startedAt, finishedAt]).toEqual([createdAt, startedAt, finishedAt].toSorted());
    });

    it('has the agent version and the charge of that version', async () => {
      const version = await stack.tenant({
        credits: 10,
        agents: [...AGENTS, expressionAgent('good', '{ "second": true }', { pricing: { base: 1, max: 1 } })],
      });
      const { body } = await version.request('POST', '/api/agent/run', { agentName: 'good', args: {} });
      expect((await version.request('GET', `/api/agent/executions/${body.agentExecutionId}`)).body).toMatchObject({
        agentVersion: 2,
        charge: 1,
        output: { second: true },
      });
    });
  });

  describe('400', () => {
    it('rejects a query parameter', async () =>
      expectError(await get(newId(), '?include=args'), 400, 'invalid_request', { at: '/include' }));
  });

  describe('404', () => {
    it('answers an unknown id and a malformed one alike', async () => {
      const replies = [await get(newId()), await get('not-a-uuid'), await get('%20'), await get('x'.repeat(300))];
      for (const reply of replies) expectError(reply, 404, 'not_found');
      expect(new Set(replies.map(({ body }) => body.error)).size).toBe(1);
    });
  });
});

describe('DELETE /api/agent/executions/{id}', () => {
  const LONG = expressionAgent('long', '($f := function($n) { $f($n + 1) }; $f(0))', {
    limits: { wallMs: 300_000, maxSteps: 1_000_000_000 },
  });
  const cancel = (id: string) => tenant.request('DELETE', `/api/agent/executions/${id}`);

  it('202: the run ends as cancelled, at whichever replica it is; again, 409', async () => {
    const other = await stack.tenant({ credits: 10, agents: [LONG] });
    const run = other.request('POST', '/api/agent/run', { agentName: 'long', args: {} });
    const [{ id }] = await eventually(async () => {
      const { body } = await other.request('GET', '/api/agent/executions?status=running');
      return body.items.length === 1 && body.items;
    });
    const reply = await other.request('DELETE', `/api/agent/executions/${id}`);
    expect([reply.status, reply.body]).toEqual([
      202,
      expect.objectContaining({ id, agent: 'long', status: 'running' }),
    ]);
    expect(await run).toMatchObject({
      status: 500,
      body: { success: false, code: 'run_cancelled', agentExecutionId: id },
    });
    expect((await other.request('GET', `/api/agent/executions/${id}`)).body.status).toBe('cancelled');
    expectError(await other.request('DELETE', `/api/agent/executions/${id}`), 409, 'conflict');
  });

  it('409 for what has ended, 404 for what is not there', async () => {
    expectError(await cancel(runs[0]!.body.agentExecutionId), 409, 'conflict');
    for (const id of [newId(), 'nothing']) expectError(await cancel(id), 404, 'not_found');
  });
});
