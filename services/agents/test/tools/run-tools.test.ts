import { ServiceError, type KnownReason } from 'platform/core/errors.ts';
import { ToolFault } from '../../src/tools/run-tools.ts';
import { toolsFor } from './tools-for.ts';

const error = (code: string, more: object = {}) => ({ error: expect.objectContaining({ code, ...more }) });

describe('the tools of a run', () => {
  it('keep memory objects: create, get, find, update, delete', async () => {
    const { call } = toolsFor();
    const made = (await call('create', { type: 'Note', key: 'a', content: { text: 'one', n: 1 } })) as { id: string };
    expect(made).toMatchObject({
      type: 'Note',
      key: 'a',
      content: { text: 'one', n: 1 },
      revision: 1,
      etag: '"1-Note"',
    });
    expect(await call('get', { id: made.id })).toEqual(made);
    expect(await call('get', { type: 'Note', key: 'a' })).toEqual(made);
    expect(await call('get', { type: 'Note', key: 'b' })).toBeNull();
    expect(await call('get', { id: 'unknown' })).toBeNull();
    expect(await call('find', { type: 'Note' })).toMatchObject({ total: 1, items: [{ key: 'a' }], nextCursor: null });
    expect(await call('find', {})).toMatchObject({ total: 1 });
    expect(await call('update', { type: 'Note', key: 'a', content: { text: 'two' } })).toMatchObject({ revision: 2 });
    expect(await call('update', { id: made.id, content: {}, ifMatch: '"1-Note"' })).toEqual(
      error('precondition_failed'),
    );
    expect(await call('create', { type: 'Note', key: 'a', content: {} })).toEqual(
      error('already_exists', { id: made.id }),
    );
    expect(await call('create', { type: 'Note', key: 'a', content: {}, upsert: true })).toMatchObject({ revision: 3 });
    expect(await call('delete', { type: 'Note', key: 'a' })).toEqual({ success: true, id: made.id });
    expect(await call('delete', { id: made.id })).toEqual(error('not_found'));
    expect(await call('update', { type: 'Note', key: 'a', content: {} })).toEqual(error('not_found'));
  });

  it('act as the run, for its organization, for the listed types, within the limits of its tier', async () => {
    const { call, memory } = toolsFor();
    await call('find', {});
    expect(memory.calls[0]!.principal).toMatchObject({
      ...{ kind: 'AGENT_EXECUTION', organizationId: 'one', name: 'keeper', memoryTypes: ['Note'], via: '' },
      ...{ tier: 'professional', limits: { memory_objects: 7 } },
    });
    expect(memory.calls[0]!.requestId).toBe('r-1');
    expect(await call('create', { type: 'Other', content: {} })).toEqual(error('not_found'));
  });

  it('only read where the definition says so, or says nothing', async () => {
    for (const access of ['read', undefined] as const) {
      const { tools, call, memory } = toolsFor({ tools: { memory: { types: ['Note'], access } } });
      expect(tools.operations.map(({ name }) => name)).toEqual(['find', 'get']);
      for (const name of ['create', 'update', 'delete', 'drop', '__proto__'])
        expect(await call(name, { type: 'Note', key: 'a', content: {} })).toEqual(error('forbidden'));
      expect(memory.calls).toEqual([]);
    }
  });

  it.each([
    ['create', '{"type":"Note","content":{},"typo":1}', '/typo'],
    ['create', '{"type":"Note"}', '/content'],
    ['create', '{"type":"Note","content":[]}', '/content'],
    ['find', '{"pageSize":101}', '/pageSize'],
    ['find', '{"pageSize":"1"}', '/pageSize'],
    ['get', '{"id":"a","key":"b"}', ''],
    ['get', '{"type":"Note"}', ''],
    ['delete', '{}', ''],
    ['find', '[]', ''],
    ['find', 'null', ''],
    // what the REST API refuses, too
    ['create', '{"type":"Note","content":{"a":1,"a":2}}', '/content/a'],
    ['create', '{"type":"Note","content":{"__proto__":1}}', '/content/__proto__'],
    ['create', '{"type":"Note","content":{"n":9007199254740993}}', '/content/n'],
    ['create', '{"type":"Note","content":{"t":"\\u0000"}}', '/content/t'],
    ['create', '{"type":"Note","content":{"t":"\\udc00"}}', '/content/t'],
    ['create', '{"type":"Note","content":{"t":"\udc00"}}', '/content/t'],
  ])('refuse an input of %s that is not valid: %s', async (operation, input, path) => {
    const { call, memory } = toolsFor();
    const answer = (await call(operation, input)) as { error: { details?: { path: string }[] } };
    expect(answer).toEqual(error('invalid_request'));
    expect(answer.error.details?.[0]?.path ?? '').toBe(path);
    expect(memory.calls).toEqual([]);
  });

  it('refuse what is no JSON, and what is too large', async () => {
    const { call } = toolsFor();
    expect(await call('find', '{"type":')).toEqual(error('malformed_json'));
    const content = { text: 'x'.repeat(300_000) };
    expect(await call('create', { type: 'Note', content })).toEqual(error('invalid_request'));
  });

  it('hand a content on as its text, so that it comes back as it went in', async () => {
    const { call, memory } = toolsFor();
    const text = '{"n":1.0,"list":[1e2,{"a":null}],"ü":"\\""}';
    await call('create', `{"type":"Note","key":"a","content":${text}}`);
    const [stored] = (await memory.client.listMemoryObjects({}, memory.calls[0]!)).items;
    expect(stored!.content).toBe(text);
  });

  it('are called at most so often', async () => {
    const { call, memory } = toolsFor({ maxToolCalls: 2 });
    expect(await call('find', {})).toMatchObject({ total: 0 });
    expect(await call('find', { typo: 1 })).toEqual(error('invalid_request'));
    expect(await call('find', {})).toEqual(error('forbidden', { message: 'The run may call its tools 2 times' }));
    expect(memory.calls).toHaveLength(1);
  });

  it.each<KnownReason>(['UNAVAILABLE', 'OUTCOME_UNKNOWN', 'INTERNAL'])(
    'end the run by the fault of the platform when memory answers %s',
    async (reason) => {
      const { call, memory } = toolsFor();
      memory.failing.error = new ServiceError(reason);
      await expect(call('find', {})).rejects.toThrow(ToolFault);
    },
  );

  it('say how to ask for less when an answer would be too large', async () => {
    const { call, memory } = toolsFor();
    memory.failing.error = new ServiceError('REPLY_TOO_LARGE', undefined, { facts: { bytes: 2_000_000 } });
    expect(await call('find', {})).toEqual(
      error('reply_too_large', { message: expect.stringContaining('fewer objects') }),
    );
    expect(memory.calls[0]!.maxReplyBytes).toBe(1_048_576);
  });

  it('are none where the definition lists none', () => {
    expect(toolsFor({ tools: null as never }).tools).toBeUndefined();
  });
});
