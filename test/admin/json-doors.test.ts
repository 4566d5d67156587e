import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { newId } from 'platform/core/ids.ts';
import { InputError, readJsonInput } from '../../admin/src/json-input.ts';
import { jsonOf, StoredJson } from '../../admin/src/output.ts';
import { runToEnd } from '../support/run-process.ts';
import { sharedStack } from '../support/shared-stack.ts';
import { REPOSITORY, type RunningStack } from '../support/stack.ts';
import { expressionAgent } from '../support/tenant.ts';
import { commandLine, json, printed, sentence, type CommandLine } from './admin-command.ts';

const MARK = Buffer.from('\ufeff');
const utf16 = (text: string): Buffer => Buffer.from(`\ufeff${text}`, 'utf16le');

describe('what the admin command line reads is JSON by the rules of REST', () => {
  const faultOf = (input: string | Buffer): string => {
    try {
      readJsonInput(Buffer.from(input), 'f');
      return 'none';
    } catch (error) {
      if (error instanceof InputError) return error.message;
      throw error;
    }
  };

  it.each<[string | Buffer, string]>([
    ['{\n"a": {"n":\n174322306148984899}}', 'f:2: /a/n: The integer is beyond ±(2^53−1)'],
    ['{"a":\n1,\n"a":\n2}', 'f:3: /a: The name appears twice in its object'],
    ['{"a":[1,\n{"b":1,\n"\\u0062":2}]}', 'f:3: /a/1/b: The name appears twice in its object'],
    ['{\n"a~/b": "\\ud800"}', 'f:2: /a~0~1b: The string holds a lone surrogate'],
    ['{\n"a": ["x",\n"\\u0000"]}', 'f:3: /a/1: The character NUL is not allowed'],
    ['{\n\n"__proto__": 1}', 'f:3: /__proto__: The name __proto__ is not allowed'],
    ['{"n": 1e400}', 'f:1: /n: The number is too large'],
    [Buffer.from('{\n"n": "\xe9"}', 'latin1'), 'f:2: has bytes that are not UTF-8'],
    [utf16('{}'), 'f:1: is UTF-16; save it as UTF-8'],
    ['{\n"a": 1,\n}', 'f:3: is not JSON: property name expected'],
    ['{\n"a": /* 1 */ 1}', 'f:2: is not JSON: invalid comment token'],
    ['', 'f:1: is not JSON: value expected'],
    ['{"a": 01}', 'f:1: is not JSON: comma expected'],
  ])('%j is refused: %s', (input, message) => expect(faultOf(input)).toBe(message));

  it('a text that is nested as deeply as it is long is refused like others', () =>
    expect(faultOf(`\n${'['.repeat(100_000)}`)).toBe(
      `f:2: ${'/0'.repeat(64)}: The value is nested deeper than 64 levels`,
    ));

  it('a byte order mark of UTF-8, which editors write, is left out', () => {
    const { text, json } = readJsonInput(Buffer.concat([MARK, Buffer.from('{"a": 1}')]), 'f');
    expect([text, json.toString()]).toEqual(['{"a": 1}', '{"a":1}']);
    expect(faultOf(Buffer.concat([MARK, MARK, Buffer.from('{}')]))).toMatch(/^f:1: is not JSON/);
  });

  it('a line is found of each member and element, and of the nearest one around what is absent', () => {
    const { lineOf } = readJsonInput(Buffer.from('{"a": {\n"0": [1,\n{"x/y":\n2}]},\n"b": 1}'), 'f');
    expect(['', '/a', '/a/0', '/a/0/1', '/a/0/1/x~1y', '/a/0/7', '/a/none/0', '/b', '/c'].map(lineOf)).toEqual([
      ...[1, 1, 2, 3, 3, 2, 1, 5, 1],
    ]);
  });

  it('printed JSON has the values of stored text as they are spelled, and is printed as JSON.stringify prints', () => {
    const text = '{"b":1.0,"2":1e2,"1":-0,"\\"":[],"\\\\":{},"x":"\u200d\u0085 [,\\"]"}';
    expect(jsonOf({ id: 'i', output: new StoredJson(text), none: undefined })).toBe(
      `{"id":"i","output":${text.replace('\u200d', '\\u200d').replace('\u0085', '\\u0085')}}`,
    );
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const record = { value, rows: [{ value }], text: 'a' };
        const stored = new StoredJson(JSON.stringify(value, null, 3));
        const printed = jsonOf({ value: stored, rows: [{ value: stored }], text: 'a' }, true);
        expect(printed).toBe(jsonOf(record, true));
        expect(JSON.parse(printed)).toEqual(JSON.parse(JSON.stringify(record)));
        if (!/\p{C}/u.test(JSON.stringify(value))) expect(printed).toBe(JSON.stringify(record, null, 2));
      }),
    );
  });
});

describe('the doors of the admin command line', () => {
  let stack: RunningStack;
  let admin: CommandLine;
  let organization: string;
  let file: string;
  beforeAll(async () => {
    stack = await sharedStack();
    admin = commandLine(stack.env);
    organization = (await stack.tenant({ credits: 20, agents: [expressionAgent('same', '$')] })).name;
    file = join(stack.folder, `${newId()}.json`);
  });
  afterAll(() => rmSync(file, { force: true }));
  const on = (words: string, more: readonly string[] = [], input?: string | Buffer) =>
    admin([...`--organization ${organization} ${words}`.split(' '), ...more], {}, input);

  it('args: what would change is refused with its place, and nothing is run', async () => {
    const run = (args: string, input?: string | Buffer) => sentence(on('agent run same --args', [args], input), 2);
    expect(await run('{"a":{"n":174322306148984899}}')).toBe('--args:1: /a/n: The integer is beyond ±(2^53−1)');
    expect(await run('{"a":1,"a":1}')).toBe('--args:1: /a: The name appears twice in its object');
    expect(await run('-', '{\n"a":"\\udead"}')).toBe('standard input:2: /a: The string holds a lone surrogate');
    expect(await run('-', Buffer.of(0x22, 0xff, 0x22))).toBe('standard input:1: has bytes that are not UTF-8');
    expect(JSON.parse((await on('--json agent run same --args', ['{'])).stderr)).toEqual({
      error: '--args:1: is not JSON: close brace expected',
      code: 'usage',
    });
    expect(await json(on('--json execution list'))).toEqual([]);
  });

  it('bytes of an argument that are not UTF-8 are refused, whatever the command', async () => {
    const words = `admin/src/main.ts --organization ${organization} agent run same --args "$(printf '{"n":"\\351"}')"`;
    const { code, stderr } = await runToEnd('/bin/sh', ['-c', `exec "$0" ${words}`, process.execPath], {
      env: stack.env,
      cwd: REPOSITORY,
    });
    expect([code, stderr]).toEqual([
      2,
      '{"n":"\ufffd"} has bytes that are not UTF-8, or U+FFFD, which in JSON can be written as \\ufffd\n',
    ]);
  });

  it('output and args are printed as they are stored', async () => {
    const args = '{"b":1.0,"2":1e2,"\\"":1,"\\\\":2,"z":"\u200d"}';
    const { stdout } = await on('--json agent run same --args', [args]);
    const { agentExecutionId } = JSON.parse(stdout) as { agentExecutionId: string };
    expect((await on('agent run same --args', [args])).stdout).toContain('"\\\\":2,"z":"\\u200d"');
    const shown = await printed(on(`--json execution show ${agentExecutionId}`));
    expect(shown.replace(/\s+/g, '')).toContain(`"args":${args.replace('\u200d', '\\u200d')}`);
    for (const text of [stdout, shown]) expect(text).toMatch(/"\\\\": 2,\n +"z": "\\u200d"\n/);
  });

  it('a definition that would be changed is refused with file, line and pointer, and others are applied', async () => {
    const definition = (more: string): string => {
      const { name, ...rest } = expressionAgent('strict', '1') as { name: string };
      return JSON.stringify({ name, description: 0, ...rest }, null, 1).replace('"description": 0', more);
    };
    const apply = async (content: string | Buffer) => {
      writeFileSync(file, content);
      const { code, stderr } = await on('agent apply', [file]);
      return [code, stderr.replace(file, 'file')];
    };
    expect(await apply(definition('"limits": {\n "maxSteps": 174322306148984899}'))).toEqual([
      1,
      'file:4: /limits/maxSteps: The integer is beyond ±(2^53−1)\n',
    ]);
    expect(await apply(definition('"description": "1",\n "description": "2"'))).toEqual([
      1,
      'file:4: /description: The name appears twice in its object\n',
    ]);
    expect(await apply(utf16(definition('"description": "1"')))).toEqual([1, 'file:1: is UTF-16; save it as UTF-8\n']);
    writeFileSync(file, Buffer.of(0x7b, 0x0a, 0xff, 0x7d));
    expect(JSON.parse((await on('--json agent apply', [file])).stdout)).toEqual([
      {
        ...{ file, outcome: 'failed', code: 'invalid_file' },
        faults: [{ line: 2, path: '', message: 'has bytes that are not UTF-8' }],
      },
    ]);
    expect(await apply(definition('"outputSchema": {"maximum": 9223372036854775807}'))).toEqual([0, '']);
    const marked = `\ufeff${definition('"limits": {\r\n "maxSteps": 100.0}')}`;
    expect(await apply(marked)).toEqual([0, '']);
    expect(await printed(on('agent show strict'))).toBe(`${marked.slice(1)}\n`);
    expect(await printed(on('--json agent show strict'))).toMatch(/"limits": \{\n {6}"maxSteps": 100.0\n {4}\}/);
    expect(await printed(on('agent diff', [file]))).toBe('None.\n');
  });

  it('a secret is stored as it is given, or refused', async () => {
    const set = (input: string | Buffer) => sentence(on('secret set bytes', [], input), 2);
    expect(await set(Buffer.of(0x61, 0xff))).toBe('Standard input has bytes that are not UTF-8');
    expect(await set(utf16('secret'))).toBe('Standard input is UTF-16; save it as UTF-8');
    expect(await set(Buffer.from('secret', 'utf16le'))).toBe(
      'Standard input has a NUL character, which no secret may have',
    );
    expect(await set('\ufeffsecret')).toBe('Standard input begins with a byte order mark');
    expect(await printed(on('secret list'))).toBe('None.\n');
  });
});
