import { ServiceError } from 'platform/core/errors.ts';
import { fairScheduler } from 'platform/core/fair-scheduler.ts';
import type { RunTools } from '../../../src/tools/run-tools.ts';
import { MAX_INPUT_BYTES, REFUSED_CALLS, TOOL_CALLS_AT_ONCE } from '../../../src/runtimes/runners/tool-calls.ts';
import { toolsFor } from '../../tools/tools-for.ts';
import { runners, testPool, type Run, type TestPool } from '../runners/pool-fixture.ts';

let pool: TestPool;
beforeAll(() => {
  pool = testPool();
});
afterAll(() => pool.stop());

const run = (body: string, tools: RunTools | undefined, more: Run = {}) =>
  pool.run(`async function run(args) {${body}}`, { type: 'script', tools, ...more });
const output = (value: unknown) => expect.objectContaining({ outcome: 'succeeded', outputText: JSON.stringify(value) });
const failure = (message: string) => expect.objectContaining({ outcome: 'failed', message });

/** Tools whose answers a test gives. */
function answering(call: RunTools['call']): RunTools {
  return { ...toolsFor().tools, maxCalls: 1_000_000, call };
}

describe('a script with tools', () => {
  it('keeps memory objects, and reads its own writes', async () => {
    const { tools } = toolsFor();
    const body = `
      const made = await memory.create({ type: 'Note', key: 'a', content: { text: 'ü"\\\\', n: 1.5 } });
      await memory.update({ id: made.id, content: { text: 'two' }, ifMatch: made.etag });
      const { total, items } = await memory.find({ type: 'Note' });
      const { content } = await memory.get({ type: 'Note', key: 'a' });
      await memory.delete({ id: made.id });
      return [made.content, total, items[0].revision, content, await memory.get({ id: made.id })];`;
    expect(await run(body, tools)).toEqual(output([{ text: 'ü"\\', n: 1.5 }, 1, 2, { text: 'two' }, null]));
  });

  it('may catch what a tool refuses, with its code, and fails by its message otherwise', async () => {
    const { tools } = toolsFor();
    const body = (work: string) =>
      `try { ${work} } catch (error) { return [error instanceof Error, error.code, error.message, error.details]; }`;
    expect(await run(body('await memory.delete({ id: "x" })'), tools)).toEqual(
      output([true, 'not_found', 'Memory object not found', null]),
    );
    const details = [{ path: '/typo', message: 'typo is not allowed' }];
    expect(await run(body('await memory.find({ typo: 1 })'), tools)).toEqual(
      output([true, 'invalid_request', 'The input of memory.find is not valid', details]),
    );
    expect(await run('await memory.delete({ id: "x" })', tools)).toEqual(failure('Memory object not found'));
  });

  it('writes nothing that JSON would change: a number that is not finite, a half of a surrogate pair', async () => {
    const { tools, memory } = toolsFor();
    const body = (content: string) =>
      `try { await memory.create({ type: 'Note', content: ${content} }); } catch ({ code, details }) { return [code, details[0].path]; }`;
    for (const content of ['{ a: [{ "b/~": NaN }] }', '{ a: [{ "b/~": "\\ud800" }] }', '{ a: [{ "b/~": 2 ** 53 }] }'])
      expect(await run(body(content), tools)).toEqual(output(['invalid_request', '/content/a/0/b~1~0']));
    expect(memory.calls).toEqual([]);
  });

  it('is stopped at its time limit while its long calls wait for their turn, one after the other', async () => {
    const schedule = fairScheduler();
    const own = testPool({ schedule });
    let isBusy = true;
    const otherWork = (): void => {
      const sinceMs = performance.now();
      while (performance.now() - sinceMs < 20);
    };
    const busy = (async () => {
      while (isBusy) await schedule('one', otherWork);
    })();
    const tools = answering(async () => '{"error":{"code":"forbidden","message":"no more"}}');
    const body = "const text = 'x'.repeat(9_000); for (;;) await memory.create(text).catch(() => 0);";
    const result = await own.run(`async function run() {${body}}`, {
      ...{ type: 'script', tools, limits: { wallMs: 100 } },
      signal: AbortSignal.timeout(20_000),
    });
    isBusy = false;
    await busy;
    await own.stop();
    expect(result).toMatchObject({ outcome: 'timed_out' });
  });

  it('has the operations of its definition, and no object memory without tools', async () => {
    const { tools } = toolsFor({ tools: { memory: { types: ['Note'] } } });
    expect(await run('return Object.keys(memory);', tools)).toEqual(output(['find', 'get']));
    expect(await run('return typeof memory;', undefined)).toEqual(output('undefined'));
    expect(await run('return typeof memory;', tools)).toEqual(output('object'));
  });

  it('has its calls answered before it ends, also those that it does not wait for', async () => {
    const { tools, memory } = toolsFor();
    expect(await run("memory.create({ type: 'Note', content: {} }); return 1;", tools)).toEqual(output(1));
    expect(await run("memory.create({ type: 'Note', content: {} }); throw new Error('no');", tools)).toEqual(
      failure('no'),
    );
    expect(memory.calls).toHaveLength(2);
    const chained = "memory.create({ type: 'Note', content: {} }).then(() => memory.find()); return 1;";
    expect(await run(chained, tools)).toEqual(output(1));
    expect(memory.calls).toHaveLength(4);
  });

  it('disturbs no run after it when it ends while calls are under way and others wait', async () => {
    const { tools } = toolsFor();
    // Its first calls are answered while it computes, and their answers are read after its end.
    const source = `for (let i = 0; i < 50; i++) memory.find();
      for (const start = Date.now(); Date.now() - start < 300;);
      throw new Error('the end');
      function run() {}`;
    const compute = 'const run = () => { for (const start = Date.now(); Date.now() - start < 100;); return 1; }';
    const ended = pool.run(source, { type: 'script', tools });
    const neighbours = [1, 2].map(() => pool.run(compute, { type: 'script', organizationId: 'neighbour' }));
    expect(await ended).toEqual(failure('the end'));
    expect(await Promise.all(neighbours)).toEqual([output(1), output(1)]);
  });

  it('has a few calls under way at once, and all of them answered, each with its own answer', async () => {
    // Each call is answered when as many are under way as may be; if there were fewer, none would be.
    const underWay: (() => void)[] = [];
    let most = 0;
    const tools = answering(
      (_operation, input) =>
        new Promise((resolve) => {
          underWay.push(() => resolve(`{"result":${input}}`));
          most = Math.max(most, underWay.length);
          if (underWay.length === TOOL_CALLS_AT_ONCE)
            setImmediate(() => underWay.splice(0).forEach((answer) => answer()));
        }),
    );
    const calls = 12 * TOOL_CALLS_AT_ONCE;
    const body = `return Promise.all(Array.from({ length: ${calls} }, (_, key) => memory.get({ key })));`;
    expect(await run(body, tools)).toEqual(output(Array.from({ length: calls }, (_, key) => ({ key }))));
    expect(most).toBe(TOOL_CALLS_AT_ONCE);
  });

  it('sends large inputs and gets large answers, but none beyond the limit', async () => {
    const tools = answering(async (_operation, input) => `{"result":${JSON.stringify(input.length)}}`);
    const length = (characters: number) => `return memory.get('"'.repeat(${characters}));`;
    const most = (MAX_INPUT_BYTES - 2) / 2;
    expect(await run(length(most), tools)).toEqual(output(MAX_INPUT_BYTES));
    expect(await run(length(most + 1), tools)).toEqual(
      failure(`The input of memory.get is larger than ${MAX_INPUT_BYTES} bytes`),
    );
    const large = answering(async () => JSON.stringify({ result: 'é'.repeat(500_000) }));
    expect(await run('return (await memory.get({})).length;', large)).toEqual(output(500_000));
    const small = { limits: { memoryMb: 16 } };
    const kept = 'const all = []; for (;;) all.push(await memory.get({}));';
    expect(await run(kept, large, small)).toEqual(failure('The script takes more than 16 MB of memory'));
  });

  it('ends at its limit of time while a tool does not answer, and the call is given up', async () => {
    let given: AbortSignal | undefined;
    const tools = answering((_operation, _input, signal) => {
      given = signal;
      return new Promise(() => undefined);
    });
    expect(await run('await memory.get({});', tools, { limits: { wallMs: 300 } })).toMatchObject({
      outcome: 'timed_out',
    });
    expect(given!.aborted).toBe(true);
  });

  it('also ends at its limit of time after a long input', async () => {
    const tools = answering((_operation, input) =>
      input.length > 10_000 ? Promise.resolve('{"result":1}') : new Promise(() => undefined),
    );
    const body = "await memory.get('x'.repeat(100_000)); await memory.get({});";
    expect(await run(body, tools, { limits: { wallMs: 500 } })).toMatchObject({ outcome: 'timed_out' });
  });

  it('is cancelled while a tool does not answer', async () => {
    const caller = new AbortController();
    const tools = answering(() => {
      setImmediate(() => caller.abort());
      return new Promise(() => undefined);
    });
    expect(await run('await memory.get({});', tools, { signal: caller.signal })).toMatchObject({
      outcome: 'cancelled',
    });
  });

  it('is interrupted by a fault of the platform, which it cannot catch', async () => {
    const { tools, memory } = toolsFor();
    memory.failing.error = new ServiceError('UNAVAILABLE');
    const body = 'for (;;) try { await memory.find(); } catch { return 1; }';
    expect(await run(body, tools)).toEqual({ outcome: 'interrupted' });
  });

  it('takes its steps between its calls, too', async () => {
    const { tools } = toolsFor();
    const body = 'for (;;) { await memory.find(); for (let i = 0; i < 1e6; i++); }';
    expect(await run(body, tools, { limits: { maxSteps: 30_000 } })).toMatchObject({
      outcome: 'failed',
      message: 'The script takes more than 30000 steps',
    });
    expect(await run('return 1;', tools)).toEqual(output(1));
  });

  it('goes on while so many calls are refused', async () => {
    const { tools, memory } = toolsFor({ maxToolCalls: 3 });
    const body = `let refused = 0;
      for (let i = 0; i < ${3 + REFUSED_CALLS}; i++) await memory.find().catch(() => (refused += 1));
      return refused;`;
    expect(await run(body, tools)).toEqual(output(REFUSED_CALLS));
    expect(memory.calls).toHaveLength(3);
  });

  it.each([
    ['waits for each', 'for (;;) await memory.find().catch(() => 0);'],
    ['waits for none', 'for (;;) memory.find().catch(() => 0);'],
    ['returns', `for (let i = 0; i < ${4 + REFUSED_CALLS}; i++) memory.find().catch(() => 0); return 1;`],
  ])('has failed after one call more, and its runner lives on: it %s', async (_how, body) => {
    await run('', undefined);
    const pids = runners();
    const { tools, memory } = toolsFor({ maxToolCalls: 3 });
    expect(await run(body, tools)).toEqual(failure('The script calls its tools more than 3 times'));
    expect(memory.calls.length).toBeLessThanOrEqual(3);
    expect(await run('return 1;', undefined)).toEqual(output(1));
    expect(runners()).toEqual(pids);
  });

  it.each([
    ['JSON.parse = JSON.stringify = () => { throw 1; };', 0],
    ['Promise.prototype.then = function () { return this; };', 0],
    ['Object.prototype.error = { message: "mine" };', 'mine'],
    ['globalThis.memory = null;', 0],
    ['try { memory.find = 1; } catch {}', 0],
    ['Object.defineProperty(Object.prototype, "result", { set() {} });', 0],
  ])('harms at most itself when it changes the language: %s', async (change, seen) => {
    const { tools } = toolsFor();
    const harmed = await run(
      `${change} try { return (await memory.find()).total; } catch (error) { return error.message; }`,
      tools,
    );
    expect([output(seen), expect.objectContaining({ outcome: 'failed' })]).toContainEqual(harmed);
    expect(await run('return (await memory.find()).total;', tools)).toEqual(output(0));
  });
});
