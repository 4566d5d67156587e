import fc from 'fast-check';
import { strictJson } from 'platform/json/strict-json.ts';
import {
  InvalidReportError,
  maxReportBytes,
  readReport,
  type Progress,
} from '../../../src/runtimes/runners/reports.ts';
import { MAX_INPUT_BYTES, REFUSED_CALLS } from '../../../src/runtimes/runners/tool-calls.ts';
import { finished, LIES, TRUTH, type Send } from './lies.ts';

const LIMITS = { wallMs: 60_000, maxSteps: 1_000_000, outputBytes: 10_000 };

const PROGRESS: Progress = {
  ...{ id: 7, steps: 0, limits: LIMITS, trace: false },
  ...{ operations: [], maxToolCalls: 10, toolCalls: 0, unanswered: 0 },
};

const nested = (levels: number): string => '['.repeat(levels) + ']'.repeat(levels);
/** Of what fast-check makes and JSON.stringify writes, some would not come back equal. */
function isRefused(json: string): boolean {
  try {
    strictJson(Buffer.from(json));
    return false;
  } catch {
    return true;
  }
}

/** Reads what a runner sends, as the parent does. @returns the results */
function read(speak: (id: number, send: Send) => void, trace = false, operations: string[] = []): unknown[] {
  const progress: Progress = { ...PROGRESS, trace, operations };
  const results: unknown[] = [];
  speak(7, (sent) => {
    const report = readReport(JSON.stringify(sent), progress);
    if (report.kind === 'steps') progress.steps = report.steps;
    else if (report.kind === 'tool') {
      progress.toolCalls += 1;
      progress.unanswered += 1;
      results.push(report);
    } else results.push(report.result);
  });
  return results;
}

describe('reports of a runner', () => {
  it.each([
    { outcome: 'succeeded', outputText: '{"a":[1,-2.5e-7,"ü\\u0001",null,{}],"":{"proto":1}}', steps: 0 },
    { outcome: 'succeeded', outputText: nested(64), steps: 1_000_000 },
    { outcome: 'failed', message: 'no such customer', steps: 1_000_000 },
    { outcome: 'output_invalid', message: 'no output', steps: 1_000_000 },
    { outcome: 'timed_out', steps: 3 },
  ])('that are sound are read: %j', (result) => {
    expect(read(finished(result))).toEqual([expect.objectContaining(result)]);
  });

  it.each([
    '"\ud800"',
    '"\\ud800"',
    '"\\u0000"',
    '{"__proto__":1}',
    '{"a":1,"a":2}',
    '9007199254740992',
    '1e999',
    nested(65),
  ])('with an output that would not come back equal say that it is none: %j', (outputText) => {
    const message = expect.stringContaining("The agent's output is not acceptable: ");
    expect(read(finished({ outputText }))).toEqual([{ outcome: 'output_invalid', message, steps: TRUTH.steps }]);
  });

  it('keep nothing that was not asked for', () => {
    expect(read(finished({ cpuMs: -1, code: 'internal' }))).toEqual([TRUTH]);
  });

  it('have a trace only if it was asked for, and then it is a list of texts', () => {
    const traced = { ...TRUTH, trace: ['a', 'b'] };
    expect(read(finished(traced))).toEqual([TRUTH]);
    expect(read(finished(traced), true)).toEqual([traced]);
    for (const trace of ['a', [1], [['a']], { 0: 'a' }, Array(101).fill('a')])
      expect(() => read(finished({ trace }), true)).toThrow(InvalidReportError);
  });

  it('call tools in their order, a few at once, and only those that the agent has', () => {
    const call = (call: number, given: object = {}) => ({
      kind: 'tool',
      id: 7,
      call,
      operation: 'find',
      input: '{}',
      ...given,
    });
    const readCalls = (...calls: object[]) =>
      read((_id, send) => calls.forEach((sent) => send(sent)), false, ['find', 'get']);
    expect(readCalls(call(1), call(2, { operation: 'get' }))).toHaveLength(2);
    expect(readCalls(call(1, { input: 'x'.repeat(MAX_INPUT_BYTES) }))).toHaveLength(1);
    const four = [1, 2, 3, 4].map((number) => call(number));
    expect(readCalls(...four)).toHaveLength(4);
    for (const wrong of [
      [call(2)],
      [call(1), call(1)],
      [...four, call(5)],
      [call(1, { operation: 'create' })],
      [call(1, { operation: '__proto__' })],
      [call(1, { input: {} })],
      [call(1, { input: 'x'.repeat(MAX_INPUT_BYTES + 1) })],
    ])
      expect(() => readCalls(...wrong)).toThrow(InvalidReportError);
  });

  it('call no tool after so many refusals that a sound runner has ended the run', () => {
    const [last, further] = [10 + REFUSED_CALLS, 11 + REFUSED_CALLS];
    const after = (toolCalls: number): Progress => ({ ...PROGRESS, operations: ['find'], toolCalls });
    const call = (call: number): string =>
      JSON.stringify({ kind: 'tool', id: 7, call, operation: 'find', input: '{}' });
    expect(readReport(call(last), after(last - 1))).toMatchObject({ call: last });
    expect(() => readReport(call(further), after(last))).toThrow(InvalidReportError);
  });

  it.each(Object.keys(LIES))('are refused when they cannot be: %s', (lie) => {
    expect(() => read(LIES[lie]!)).toThrow(InvalidReportError);
  });

  it('with any JSON value as output fit, also with every character escaped', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 10 }), (value) => {
        const outputText = JSON.stringify(value);
        fc.pre(outputText.length < LIMITS.outputBytes / 4);
        const result = { outcome: 'succeeded', outputText, steps: 1 };
        expect(read(finished(result))).toEqual([
          isRefused(outputText) ? expect.objectContaining({ outcome: 'output_invalid' }) : result,
        ]);
        const limits = { ...LIMITS, outputBytes: Buffer.byteLength(outputText) };
        const bytes = Buffer.byteLength(JSON.stringify({ kind: 'finished', id: 7, result }));
        expect(bytes).toBeLessThanOrEqual(maxReportBytes({ ...PROGRESS, limits }));
      }),
    );
  });
});
