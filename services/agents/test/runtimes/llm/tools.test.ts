import type { ServerResponse } from 'node:http';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { ServiceError } from 'platform/core/errors.ts';
import type { RuntimeDefinition } from '../../../src/runtimes/rules.ts';
import type { RunRequest, Runtime } from '../../../src/runtimes/runtime.ts';
import { toolsFor } from '../../tools/tools-for.ts';
import { startEndpoint, type Endpoint } from '../network/endpoint.ts';
import { requestFor } from '../request-for.ts';
import { NO_RUNNERS, testRuntimes } from '../test-runtimes.ts';
import { callTools, chatOf, say } from './model-server.ts';

let answers: ((response: ServerResponse) => void)[];
let endpoint: Endpoint;
let runtime: Runtime;
beforeEach(async () => {
  endpoint = await startEndpoint((_request, response) =>
    (answers.length > 1 ? answers.shift()! : answers[0]!)(response),
  );
  runtime = testRuntimes(NO_RUNNERS).byType['llm']!;
});
afterEach(async () => {
  await runtime.stop();
  await endpoint.close();
});

const run = (
  tools: RunRequest['tools'],
  { settings = {}, ...given }: Partial<RunRequest> & { settings?: object } = {},
) =>
  runtime.run({
    ...requestFor({ type: 'llm', url: endpoint.url, model: 'tested', prompt: 'go', ...settings } as RuntimeDefinition),
    tools,
    ...given,
  });
const calling =
  (...calls: [name: string, input: unknown][]) =>
  (response: ServerResponse) =>
    callTools(response, calls);
const saying = (text: string) => (response: ServerResponse) => say(response, text);
const messagesOf = (index: number) => chatOf(endpoint.requests[index]!).messages;

describe('a language model with tools', () => {
  it('is told of them, calls them, and answers with what they said', async () => {
    const { tools, memory } = toolsFor();
    const note = { type: 'Note', key: 'a', content: { text: 'one' } };
    answers = [calling(['memory_create', note]), calling(['memory_get', { type: 'Note', key: 'a' }]), saying('done')];
    expect(await run(tools)).toMatchObject({
      ...{ outcome: 'succeeded', outputText: '"done"', messages: [] },
      usage: { calls: 3, tokensIn: 30, tokensOut: 15 },
    });
    const told = chatOf(endpoint.requests[0]!).tools!;
    expect(told.map(({ function: { name } }) => name)).toEqual(
      ['find', 'get', 'create', 'update', 'delete'].map((name) => `memory_${name}`),
    );
    expect(told[0]!.function.description).toContain('Memory types: Note.');
    expect(told[0]!.function.parameters).toMatchObject({ type: 'object', properties: { cursor: { type: 'string' } } });
    const [, call, answer] = messagesOf(1) as [unknown, { tool_calls: { function: unknown }[] }, { content: string }];
    expect(call.tool_calls[0]!.function).toEqual({ name: 'memory_create', arguments: JSON.stringify(note) });
    expect(JSON.parse(answer.content)).toMatchObject({ result: { type: 'Note', content: { text: 'one' } } });
    expect(memory.calls).toHaveLength(3);
  });

  it('calls several at once, and each has its answer', async () => {
    const { tools } = toolsFor();
    answers = [calling(['memory_find', {}], ['memory_get', { id: 'x' }]), saying('done')];
    expect(await run(tools)).toMatchObject({ outcome: 'succeeded' });
    expect(messagesOf(1).slice(2)).toEqual([
      { role: 'tool', tool_call_id: 'call-0', content: '{"result":{"total":0,"items":[],"nextCursor":null}}' },
      { role: 'tool', tool_call_id: 'call-1', content: '{"result":null}' },
    ]);
  });

  it.each([
    ['an input that breaks its schema', 'memory_find', { types: ['Note'] }, 'invalid_request'],
    ['an input that is no JSON', 'memory_find', Symbol('{"type":'), 'malformed_json'],
    ['a tool that it does not have', 'delete_all', {}, 'forbidden'],
    ['a type that the definition does not list', 'memory_create', { type: 'Other', content: {} }, 'not_found'],
  ])('is told what is wrong with %s, and goes on', async (_what, name, input, code) => {
    const { tools } = toolsFor();
    answers = [calling([name, input]), saying('sorry')];
    expect(await run(tools)).toMatchObject({ outcome: 'succeeded', outputText: '"sorry"' });
    const { content } = messagesOf(1).at(-1)!;
    expect(JSON.parse(content)).toMatchObject({ error: { code } });
  });

  it('that never stops calling tools fails at its limit of turns', async () => {
    const { tools, memory } = toolsFor();
    answers = [calling(['memory_find', {}])];
    expect(await run(tools, { settings: { maxTurns: 3 } })).toMatchObject({
      ...{ outcome: 'failed', message: 'The model took more than 3 turns' },
      usage: { calls: 3, tokensIn: 30, tokensOut: 15 },
    });
    expect(memory.calls).toHaveLength(3);
  });

  it('has further calls refused beyond the limit of the definition', async () => {
    const { tools, memory } = toolsFor({ maxToolCalls: 2 });
    answers = [calling(...Array.from({ length: 5 }, (): [string, object] => ['memory_find', {}])), saying('done')];
    expect(await run(tools)).toMatchObject({ outcome: 'succeeded' });
    expect(memory.calls).toHaveLength(2);
    expect(JSON.parse(messagesOf(1).at(-1)!.content)).toMatchObject({ error: { code: 'forbidden' } });
  });

  it('that calls too many tools at once has failed', async () => {
    const { tools, memory } = toolsFor();
    answers = [calling(...Array.from({ length: 33 }, (): [string, object] => ['memory_find', {}]))];
    expect(await run(tools)).toMatchObject({
      outcome: 'failed',
      message: 'The model called more than 32 tools at once',
    });
    expect(memory.calls).toEqual([]);
  });

  it('that calls a tool although it has none has failed', async () => {
    answers = [calling(['memory_find', {}])];
    expect(await run(undefined)).toMatchObject({
      outcome: 'failed',
      message: 'The model called a tool, which its agent does not have',
    });
    expect(chatOf(endpoint.requests[0]!).tools).toBeUndefined();
  });

  it.each([{ id: 1 }, { function: {} }, { function: { name: 'memory_find', arguments: {} } }, null, 'x'])(
    'whose call has no sound form has failed: %j',
    async (broken) => {
      const { tools, memory } = toolsFor();
      answers = [(response) => callTools(response, [['memory_find', {}]], broken)];
      expect(await run(tools)).toMatchObject({
        outcome: 'failed',
        message: "The model's endpoint gave no chat completion",
      });
      expect(memory.calls).toEqual([]);
    },
  );

  it('gets no answer of a tool that would fill its memory', async () => {
    const { tools, memory } = toolsFor();
    const call = { principal: { organizationId: 'one', memoryTypes: ['Note'] } } as never;
    await memory.client.createMemoryObject({ type: 'Note', key: 'a', content: `{"a":"${'x'.repeat(70_000)}"}` }, call);
    answers = [calling(['memory_find', {}]), saying('done')];
    expect(await run(tools)).toMatchObject({ outcome: 'succeeded' });
    expect(messagesOf(1).at(-1)!.content).toContain('The answer is too long');
  });

  it('is interrupted by a fault of the platform', async () => {
    const { tools, memory } = toolsFor();
    memory.failing.error = new ServiceError('UNAVAILABLE');
    answers = [calling(['memory_find', {}]), saying('done')];
    expect(await run(tools)).toEqual({ outcome: 'interrupted' });
  });

  it('ends at its limit of time while a tool does not answer', async () => {
    const { tools } = toolsFor();
    answers = [calling(['memory_find', {}])];
    const call = (_name: string, _input: string, signal: AbortSignal) =>
      new Promise<string>((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error)));
    const silent = { ...tools, call };
    const { limits } = requestFor({ type: 'llm' });
    expect(await run(silent, { limits: { ...limits, wallMs: 300 } })).toMatchObject({ outcome: 'timed_out' });
  });

  it('leaves its calls and their answers as messages, if its definition asks for them', async () => {
    const { tools } = toolsFor();
    answers = [calling(['memory_get', { id: 'x' }]), saying('done')];
    const result = await run(tools, { trace: true });
    const texts = 'messages' in result ? result.messages.map(({ parts }) => parts[0]!.text) : [];
    expect(texts).toEqual(['memory_get {"id":"x"}', '{"result":null}', 'done']);
  });

  it.each([
    ['more levels than any stack', `{"type":${'['.repeat(100_000)}${']'.repeat(100_000)}}`],
    ['no JSON', '{"type":'],
    ['the name __proto__', '{"__proto__":{"type":"Note"}}'],
  ])('goes on after an input with %s, which the model is told is wrong', async (_what, input) => {
    const { tools, memory } = toolsFor();
    answers = [calling(['memory_find', Symbol(input)]), saying('done')];
    expect(await run(tools)).toMatchObject({ outcome: 'succeeded', outputText: '"done"' });
    expect(JSON.parse(messagesOf(1).at(-1)!.content)).toHaveProperty('error.code');
    expect(memory.calls).toEqual([]);
  });

  it.each([false, true])('keeps no long answers of tools when its trace is %s', async (trace) => {
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc') as () => void;
    const length = 1_000_000;
    const call = () => Promise.resolve(JSON.stringify({ result: 'x'.repeat(length) }));
    const calls = Array.from({ length: 32 }, (): [string, object] => ['memory_find', {}]);
    let [first, last] = [0, 0];
    const measuring = (response: ServerResponse) => {
      collect();
      last = process.memoryUsage().heapUsed;
      first ||= last;
      calling(...calls)(response);
    };
    answers = [measuring, measuring, measuring, saying('done')];
    const tools = { ...toolsFor().tools, call };
    expect(await run(tools, { trace })).toMatchObject({ outcome: 'succeeded' });
    expect(last - first).toBeLessThan(10 * length);
  });
});
