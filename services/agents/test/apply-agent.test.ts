import { newId } from 'platform/core/ids.ts';
import { OPERATOR, operator } from 'platform/service/testing.ts';
import { AgentsServiceService } from 'proto/agents/v1/agents.ts';
import { definitionOf, startAgents, type Agents } from './fixture.ts';

describe('ApplyAgent', () => {
  let agents: Agents;
  beforeAll(async () => {
    agents = await startAgents();
  });
  afterAll(() => agents.service.stop());
  const apply = (definition: unknown) => agents.operate('applyAgent', { definition: JSON.stringify(definition) });

  it('stores a first version as a draft, with the operator in the audit trail', async () => {
    const name = 'first';
    expect(await apply(definitionOf(name, '1'))).toMatchObject({
      version: 1,
      changed: true,
      agent: { name, state: 'draft', latestVersion: 1, publishedVersion: undefined },
    });
    const audit = (await agents.events()).filter(
      ({ type, data }) => type === 'audit.entry.v1' && (data.target as { id: string }).id === name,
    );
    expect(audit).toMatchObject([
      {
        source: '/agents',
        data: {
          action: 'agent.apply',
          outcome: 'success',
          actor: { kind: 'operator', id: 'test' },
          target: { type: 'agent', id: name },
        },
      },
    ]);
  });

  it('answers a document equal to the newest, in any order of members, with that version', async () => {
    const definition = definitionOf('same', '1');
    await apply(definition);
    expect(await apply(Object.fromEntries(Object.entries(definition).reverse()))).toMatchObject({
      version: 1,
      changed: false,
    });
  });

  it('adds a version for a changed document and leaves the published version in place', async () => {
    await agents.publish(definitionOf('grows', '1'));
    expect(await apply(definitionOf('grows', '2'))).toMatchObject({
      version: 2,
      changed: true,
      agent: { state: 'published', latestVersion: 2, publishedVersion: 1 },
    });
    expect((await agents.run('grows', {})).output).toBe('1');
  });

  it('numbers versions without gap or repeat when documents are applied at the same time', async () => {
    const results = await Promise.allSettled(
      Array.from({ length: 8 }, (_, n) => apply(definitionOf('raced', String(n)))),
    );
    const failures = results.flatMap((result) => (result.status === 'rejected' ? [result.reason.reason] : []));
    expect(new Set(failures).size === 0 || failures.every((reason) => reason === 'CONFLICT')).toBe(true);
    const { versions } = await agents.operate('listAgentVersions', { name: 'raced' });
    expect(versions.map(({ version }) => version)).toEqual(
      Array.from({ length: 8 - failures.length }, (_, n) => 8 - failures.length - n),
    );
  });

  it.each([
    ['an unknown member', { tools: [] }, '/tools'],
    ['an unknown kind', { kind: 'Agent' }, '/kind'],
    ['a bad name', { name: '1st' }, '/name'],
    ['an unknown runtime', { runtime: { type: 'wasm', language: 'javascript', source: '1' } }, '/runtime/type'],
    [
      'a language of another runtime',
      { runtime: { type: 'script', language: 'jsonata', source: '1' } },
      '/runtime/language',
    ],
    [
      'a script that does not parse',
      { runtime: { type: 'script', language: 'javascript', source: 'function run( {}' } },
      '/runtime/source',
    ],
    [
      'a secret of a script, which can name none',
      { runtime: { type: 'script', language: 'javascript', source: 'function run() {}', secretRef: 'signing' } },
      '/runtime/secretRef',
    ],
    [
      'a secret of an expression',
      { runtime: { type: 'expression', language: 'jsonata', source: '1', secretRef: 'signing' } },
      '/runtime/secretRef',
    ],
    [
      'an expression that names an unknown variable',
      { runtime: { type: 'expression', language: 'jsonata', source: '$unknown' } },
      '/runtime/source',
    ],
    ['tools of an expression', { tools: { memory: { types: ['Note'] } } }, '/tools'],
    ['an unsound argumentsSchema', { argumentsSchema: { type: 'strange' } }, '/argumentsSchema/type'],
    ['a misspelled keyword', { argumentsSchema: { type: 'object', requred: ['a'] } }, '/argumentsSchema/requred'],
    ['an empty enum', { outputSchema: { properties: { a: { enum: [] } } } }, '/outputSchema/properties/a/enum'],
    ['an example instead of a schema', { outputSchema: { name: 'Ada', age: 36 } }, '/outputSchema'],
    [
      'an outputSchema that refers to another document',
      { outputSchema: { $ref: 'https://example.com/schema' } },
      '/outputSchema/$ref',
    ],
    [
      'an expression that does not parse',
      { runtime: { type: 'expression', language: 'jsonata', source: '1 +' } },
      '/runtime/source',
    ],
    ['a time limit over the maximum', { limits: { wallMs: 300_001 } }, '/limits/wallMs'],
    ['a negative price', { pricing: { base: -1 } }, '/pricing/base'],
    ['a price of seven decimals', { pricing: { base: 0.0000001 } }, '/pricing/base'],
    [
      'a price of seven decimals for a unit',
      { pricing: { base: 1, max: 2, perUnit: { cpuMs: 1e-7 } } },
      '/pricing/perUnit/cpuMs',
    ],
    ['a negative price for a unit', { pricing: { base: 1, max: 2, perUnit: { cpuMs: -1 } } }, '/pricing/perUnit/cpuMs'],
    ['an unknown unit', { pricing: { base: 1, max: 2, perUnit: { tokens: 1 } } }, '/pricing/perUnit/tokens'],
    ['prices of no unit', { pricing: { base: 1, max: 2, perUnit: {} } }, '/pricing/perUnit'],
    ['max below base', { pricing: { base: 2, max: 1 } }, '/pricing/max'],
    ['a metered price without max', { pricing: { base: 1, perUnit: { cpuMs: 1 } } }, '/pricing'],
  ])('rejects %s and names its path', async (_what, more, path) => {
    const error = await apply(definitionOf('rejected', '1', more)).catch((reason: unknown) => reason);
    expect(error).toMatchObject({
      name: 'ServiceError',
      details: expect.arrayContaining([
        expect.objectContaining({ path: expect.stringMatching(new RegExp(`^${path.replaceAll('$', '\\$')}`)) }),
      ]),
    });
  });

  it('names the values that a member may have', async () => {
    const tools = { memory: { types: ['note'], access: 'all' } };
    await expect(apply({ ...definitionOf('rejected', '1', { tools }), apiVersion: 'v1' })).rejects.toMatchObject({
      details: [
        { path: '/apiVersion', message: 'apiVersion must be "agents/v1"' },
        { path: '/tools/memory/access', message: 'access must be one of "read", "write"' },
      ],
    });
  });

  it('a dry run finds the same faults, and changes nothing', async () => {
    const dry = (definition: object) =>
      agents.operate('applyAgent', { definition: JSON.stringify(definition), dryRun: true });
    expect(await dry(definitionOf('planned', '1'))).toEqual({ agent: undefined, version: 1, changed: true });
    await apply(definitionOf('planned', '1'));
    expect(await dry(definitionOf('planned', '1'))).toMatchObject({ version: 1, changed: false });
    expect(await dry(definitionOf('planned', '2'))).toMatchObject({
      version: 2,
      changed: true,
      agent: { latestVersion: 1 },
    });
    await expect(dry(definitionOf('planned', '1 +'))).rejects.toMatchObject({ reason: 'INVALID_REQUEST' });
    expect((await agents.operate('listAgentVersions', { name: 'planned' })).versions).toHaveLength(1);
  });

  it('rejects text that is not JSON', async () => {
    await expect(agents.operate('applyAgent', { definition: '{' })).rejects.toMatchObject({ reason: 'MALFORMED_JSON' });
  });

  it.each([
    ['"displayName":"a","displayName":"b"', '/displayName'],
    ['"description":"a\\u0000b"', '/description'],
    ['"description":"\\ud800"', '/description'],
    ['"pricing":{"base":9007199254740993,"max":9007199254740993}', '/pricing/base'],
    ['"runtime":{"__proto__":1}', '/runtime/__proto__'],
    ['"argumentsSchema":{"maximum":9223372036854775807},"limits":{"wallMs":9223372036854775807}', '/limits/wallMs'],
    ['"argumentsSchema":{"properties":{"a":{},"\\u0061":{}}}', '/argumentsSchema/properties/a'],
  ])('rejects what would not be kept as it is written, by its path: %s', async (member, path) => {
    const definition = JSON.stringify(definitionOf('rejected', '1')).replace('{', `{${member},`);
    await expect(agents.operate('applyAgent', { definition })).rejects.toMatchObject({
      reason: 'INVALID_REQUEST',
      details: [{ path, message: expect.any(String) }],
    });
  });

  it('gives every organization its own names: the same name elsewhere is another agent', async () => {
    await apply(definitionOf('shared', '1'));
    const elsewhere = await agents.service
      .client(AgentsServiceService, OPERATOR)
      .applyAgent({ definition: JSON.stringify(definitionOf('shared', '2')) }, agents.service.as(operator(newId())));
    expect(elsewhere).toMatchObject({ version: 1, changed: true });
  });
});
