import fc from 'fast-check';
import {
  InvalidReportError,
  maxReportBytes,
  readReport,
  type Progress,
} from '../../../src/runtimes/runners/reports.ts';
import { finished, LIES, TRUTH, type Send } from './lies.ts';

const LIMITS = { wallMs: 60_000, maxSteps: 1_000_000, outputBytes: 10_000 };

/** Reads what a runner sends, as the parent does. @returns the results */
function read(speak: (id: number, send: Send) => void, trace = false): unknown[] {
  const progress: Progress = { id: 7, started: false, steps: 0, limits: LIMITS, trace };
  const results: unknown[] = [];
  speak(7, (sent) => {
    const report = readReport(JSON.stringify(sent), progress);
    if (report.kind === 'started') progress.started = true;
    else if (report.kind === 'steps') progress.steps = report.steps;
    else results.push(report.result);
  });
  return results;
}

describe('reports of a runner', () => {
  it.each([
    { outcome: 'succeeded', outputText: '{"a":[1,-2.5e-7,"ü\\ud800",null,{}],"":{"__proto__":1}}', steps: 0 },
    { outcome: 'succeeded', outputText: '['.repeat(65) + ']'.repeat(65), steps: 1_000_000 },
    { outcome: 'failed', message: 'no such customer', steps: 1_000_000 },
    { outcome: 'timed_out', steps: 3 },
  ])('that are sound are read: %j', (result) => {
    expect(read(finished(result))).toEqual([expect.objectContaining(result)]);
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

  it.each(Object.keys(LIES))('are refused when they cannot be: %s', (lie) => {
    expect(() => read(LIES[lie]!)).toThrow(InvalidReportError);
  });

  it('with any JSON value as output fit, also with every character escaped', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 10 }), (value) => {
        const outputText = JSON.stringify(value);
        fc.pre(outputText.length < LIMITS.outputBytes / 4);
        const result = { outcome: 'succeeded', outputText, steps: 1 };
        expect(read(finished(result))).toEqual([result]);
        const limits = { ...LIMITS, outputBytes: Buffer.byteLength(outputText) };
        const bytes = Buffer.byteLength(JSON.stringify({ kind: 'finished', id: 7, result }));
        expect(bytes).toBeLessThanOrEqual(maxReportBytes({ id: 7, started: true, steps: 0, limits, trace: false }));
      }),
    );
  });
});
