import type { ServerResponse } from 'node:http';
import type { RunRequest, RunResult } from '../../src/runtimes/runtime.ts';
import { completionOf } from './llm/model-server.ts';
import { startEndpoint, type Endpoint } from './network/endpoint.ts';
import { testPool } from './runners/pool-fixture.ts';
import { requestFor } from './request-for.ts';
import { SECRET, testRuntimes } from './test-runtimes.ts';

/** What endpoint and model answer next. */
let answer: (response: ServerResponse) => void;
let endpoint: Endpoint;
const runtimes = testRuntimes(testPool(), { secretValues: () => Promise.resolve([SECRET]) });
beforeAll(async () => {
  endpoint = await startEndpoint((_request, response) => answer(response));
});
afterAll(async () => {
  await runtimes.stop();
  await endpoint.close();
});
beforeEach(() => endpoint.requests.splice(0));

const run = (runtime: { type: string }, given: Partial<RunRequest> = {}): Promise<RunResult> =>
  runtimes.byType[runtime.type]!.run({ ...requestFor(runtime), ...given });
const expression = (source: string) => run({ type: 'expression', ...{ language: 'jsonata', source } });
const script = (output: string) =>
  run({ type: 'script', ...{ language: 'javascript', source: `const run = () => (${output});` } });
/** @param body of the answer, as bytes in Latin-1 */
const respond = (body: string) => (response: ServerResponse) => void response.end(Buffer.from(body, 'latin1'));
function http(output: string): Promise<RunResult> {
  answer = respond(`{ "output": ${output} }`);
  return run({ type: 'http', ...{ url: endpoint.url, secretRef: 'signing' } });
}
const llm = (given: Partial<RunRequest> = {}): Promise<RunResult> =>
  run({ type: 'llm', ...{ url: endpoint.url, model: 'tested', prompt: 'go' } }, given);
function said(content: string): Promise<RunResult> {
  answer = respond(JSON.stringify(completionOf(content)));
  return llm({ outputSchema: {} });
}

const TOO_LARGE = 'The integer is beyond ±(2^53−1)';
const HALF = 'The string holds a lone surrogate';
const NUL = 'The character NUL is not allowed';
const PROTO = 'The name __proto__ is not allowed';
const TWICE = 'The name appears twice in its object';
const INFINITE = 'The number is not a finite number';
const BYTES = 'The bytes are not UTF-8';
const DEEP = 'The value is nested deeper than 64 levels';
const BACKSLASH_U = '\\u';
const list = (levels: number): string => '['.repeat(levels) + ']'.repeat(levels);

describe('an output that would not come back equal is none, and the caller learns its place', () => {
  it.each([
    ['expression', () => expression('{ "a": [1, 174322306148984899] }'), '/a/1', TOO_LARGE],
    ['expression', () => expression(`{ "a~/": "${BACKSLASH_U}d800" }`), '/a~0~1', HALF],
    ['expression', () => expression(`{ "a${BACKSLASH_U}d800": 1 }`), '/a\ufffd', HALF],
    ['expression', () => expression(`"${BACKSLASH_U}0000"`), '', NUL],
    ['expression', () => expression('{ "a": { "__proto__": 1 } }'), '/a/__proto__', PROTO],
    ['expression', () => expression('$merge([{ "a": 1 }, { "__proto__": 1 }])'), '/__proto__', PROTO],
    ['expression', () => expression('{ "a": [0, $sum([1e308, 1e308])] }'), '/a/1', INFINITE],
    ['expression', () => expression('$reduce([1..100], function($x, $y) { [[$x]] }, 1)'), '/0'.repeat(64), DEEP],
    ['script', () => script('{ a: [1, 174322306148984899] }'), '/a/1', TOO_LARGE],
    ['script', () => script(`{ 'a~/': '${BACKSLASH_U}d800' }`), '/a~0~1', HALF],
    ['script', () => script(`{ ['a' + String.fromCharCode(0xdfff)]: 1 }`), '/a\ufffd', HALF],
    ['script', () => script('String.fromCharCode(0)'), '', NUL],
    ['script', () => script(`JSON.parse('{"a":{"__proto__":1}}')`), '/a/__proto__', PROTO],
    ['script', () => script('{ a: [[], { b: { c: 1 }, "~": [1, NaN, Infinity] }] }'), '/a/1/~0/1', INFINITE],
    ['script', () => script('-Infinity'), '', INFINITE],
    ['script', () => script('{ a: { toJSON: () => ({ b: 1 / 0 }) } }'), '/a/b', INFINITE],
    ['script', () => script('[new Number(NaN)]'), '/0', INFINITE],
    ['script', () => script(`JSON.parse('${list(65)}')`), '/0'.repeat(64), DEEP],
    ['http', () => http('{"a":[1,174322306148984899]}'), '/a/1', TOO_LARGE],
    ['http', () => http('174322306148984899'), '', TOO_LARGE],
    ['http', () => http('{"a":{"b":1,"\\u0062":2}}'), '/a/b', TWICE],
    ['http', () => http(`{"a~/":"${BACKSLASH_U}d800"}`), '/a~0~1', HALF],
    ['http', () => http(`[0,"${BACKSLASH_U}0000"]`), '/1', NUL],
    ['http', () => http('{"__proto__":1}'), '/__proto__', PROTO],
    ['http', () => http('["\xff"]'), '/0', BYTES],
    ['http', () => http('{"\xc3\xa9":1,"a":"\xef\xbf\xbd\xc3("}'), '/a', BYTES],
    ['http', () => http('1e400'), '', 'The number is too large'],
    ['llm', () => said('{"a":[1,174322306148984899]}'), '/a/1', TOO_LARGE],
    ['llm', () => said('{"a":{"b":1,"\\u0062":2}}'), '/a/b', TWICE],
    ['llm', () => said(`{"a~/":"${BACKSLASH_U}d800"}`), '/a~0~1', HALF],
    ['llm', () => said('{"a~/":"\ud800"}'), '/a~0~1', HALF],
    ['llm', () => said(`[0,"${BACKSLASH_U}0000"]`), '/1', NUL],
    ['llm', () => said('{"__proto__":1}'), '/__proto__', PROTO],
  ])('%s', async (_type, running, path, message) => {
    expect(await running()).toMatchObject({
      outcome: 'output_invalid',
      message: `The agent's output is not acceptable: ${path === '' ? '' : `${path} `}${message}`,
    });
  });

  it('llm, by a text that is no JSON but would not come back either', async () => {
    for (const [content, message] of [
      ['half \ud800', HALF],
      ['no \0', NUL],
    ] as const) {
      answer = respond(JSON.stringify(completionOf(content)));
      expect(await llm()).toMatchObject({ outcome: 'output_invalid', message: expect.stringContaining(message) });
    }
    answer = respond(JSON.stringify(completionOf('a?b')).replace('?', '\xff'));
    expect(await llm()).toMatchObject({
      outcome: 'output_invalid',
      message: `The agent's output is not acceptable: ${BYTES}`,
    });
  });
});

it('a model is told the place, and may answer again', async () => {
  answer = (response) =>
    respond(JSON.stringify(completionOf(endpoint.requests.length === 1 ? '[1e17]' : '[1e3]')))(response);
  expect(await llm({ outputSchema: {} })).toMatchObject({ outcome: 'succeeded', outputText: '[1e3]' });
  expect(endpoint.requests[1]!.body).toContain(`/0 The number is an integer beyond`);
});

it('an endpoint and a model that write a number in their way get it spelled so', async () => {
  const written = ' { "b" : [1.0, 1e2, -0.0] , "a" : "\\u0041\\/" } ';
  const outputText = '{"b":[1.0,1e2,-0.0],"a":"A/"}';
  for (const result of [await http(written), await said(written)])
    expect(result).toMatchObject({ outcome: 'succeeded', outputText });
});

it('a place outside of the output is one of the answer', async () => {
  answer = respond('{"output":1,"messages":["\\u0000"]}');
  expect(await run({ type: 'http', ...{ url: endpoint.url, secretRef: 'signing' } })).toMatchObject({
    outcome: 'output_invalid',
    message: expect.stringContaining('/messages/0 The character NUL'),
  });
});

it('a secret in the place is taken out', async () => {
  expect(await http(`{"${SECRET}":1e17}`)).toMatchObject({ message: expect.stringContaining('/[redacted] ') });
});

it('a script that has changed the built-in functions is judged all the same', async () => {
  const source = `function run() {
    Number.isFinite = () => true;
    Number = Object;
    Array.prototype.push = String.prototype.concat = () => '';
    JSON.stringify = () => 'null';
    return { a: [NaN] };
  }`;
  expect(await run({ type: 'script', ...{ language: 'javascript', source } })).toMatchObject({
    outcome: 'output_invalid',
    message: expect.stringContaining('/a/0 '),
  });
});
