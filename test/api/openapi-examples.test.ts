import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { EXAMPLES } from '../../gateway/src/openapi/examples.ts';
import { openApiDocument } from '../../gateway/src/openapi/document.ts';
import { restMethods } from '../../gateway/src/contract/rest-methods.ts';
import { sharedStack } from '../support/shared-stack.ts';
import { REPOSITORY } from '../support/stack.ts';
import type { Tenant } from '../support/tenant.ts';

const INVOICE_TOTAL = JSON.parse(
  readFileSync(join(REPOSITORY, 'examples/agents/invoice-total.json'), 'utf8'),
) as object;
const document = openApiDocument(restMethods(), '');
const UUID = /[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}/g;
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

const OF_THE_STACK = ['usage', 'charge', 'limits', 'credits', 'organization', 'tier', 'maxPerMinute', 'left'];

/** What differs from run to run has its form alone: ids, times, and what is measured or belongs to the stack. */
const form = (value: unknown): unknown =>
  JSON.parse(JSON.stringify(value), (name, member: unknown) => {
    if (OF_THE_STACK.includes(name)) return name;
    if (typeof member !== 'string') return member;
    return TIME.test(member) ? 'time' : member.replaceAll(UUID, 'id');
  });

describe('the examples of the OpenAPI document', () => {
  let tenant: Tenant;
  beforeAll(async () => {
    tenant = await (await sharedStack()).tenant({ credits: 1_000, agents: [INVOICE_TOTAL] });
  });

  it('work one after the other and get the replies that the document shows', async () => {
    // the ids of the examples, and those that were made in their places
    const made = new Map<string, string>();
    for (const [route, { parameters = {}, body, status, reply }] of Object.entries(EXAMPLES)) {
      const [verb, path] = route.split(' ') as [string, string];
      const actual = Object.fromEntries(
        Object.entries(parameters).map(([name, value]) => [name, made.get(value) ?? value]),
      );
      const query = new URLSearchParams(Object.entries(actual).filter(([name]) => !path.includes(`{${name}}`)));
      const target = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => actual[name] as string);
      const got = await tenant.request(verb, query.size > 0 ? `${target}?${query}` : target, body);
      expect({ route, status: got.status, reply: form(got.body) }).toEqual({
        route,
        status,
        reply: form(reply),
      });
      const { id, agentExecutionId } = reply as Record<string, string>;
      if (id) made.set(id, got.body.id);
      if (agentExecutionId) made.set(agentExecutionId, got.body.agentExecutionId);
    }
  });

  it('are there for every operation that needs a token', () => {
    const needToken = Object.entries(document.paths).flatMap(([path, verbs]) =>
      Object.entries(verbs).flatMap(([verb, { security }]) => (security ? [] : [`${verb.toUpperCase()} ${path}`])),
    );
    expect(Object.keys(EXAMPLES).sort()).toEqual(needToken.sort());
  });
});
