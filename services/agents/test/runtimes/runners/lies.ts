import { writeSync } from 'node:fs';

export type Send = (report: unknown) => void;
export const TRUTH = { outcome: 'succeeded', outputText: '2', steps: 3 };

/** The report by which a sound evaluation ends, with something else in its place. */
export const finished =
  (changes: object) =>
  (id: number, send: Send): void => {
    send({ kind: 'finished', id, result: { ...TRUTH, ...changes } });
  };
const steps =
  (...numbers: unknown[]) =>
  (id: number, send: Send): void => {
    for (const number of numbers) send({ kind: 'steps', id, steps: number });
    send({ kind: 'finished', id, result: { ...TRUTH, steps: 900_000 } });
  };

/** What a runner may report that no sound runner reports, by a name that is also a JSONata expression. */
export const LIES: Record<string, (id: number, send: Send) => void> = {
  stepsNegative: finished({ steps: -1 }),
  stepsNaN: finished({ steps: NaN }),
  stepsFraction: finished({ steps: 1.5 }),
  stepsText: finished({ steps: '3' }),
  stepsMissing: finished({ steps: undefined }),
  stepsAboveTheLimit: finished({ steps: 1_000_001 }),
  stepsReportedNegative: steps(-10_000),
  stepsReportedText: steps('10000'),
  stepsReportedAboveTheLimit: steps(10_000, 1_010_000),
  stepsReportedFalling: steps(20_000, 10_000),
  stepsReportedTooOften: steps(10_000, 10_001),
  stepsFewerThanReported: (id, send) => {
    send({ kind: 'steps', id, steps: 10_000 });
    send({ kind: 'finished', id, result: TRUTH });
  },
  outputMissing: finished({ outputText: undefined }),
  outputNoText: finished({ outputText: { total: 1 } }),
  outputEmpty: finished({ outputText: '' }),
  outputNoJson: finished({ outputText: 'undefined' }),
  outputThatEndsTheReply: finished({ outputText: '1,"success":false' }),
  outputOfTwoValues: finished({ outputText: '1 2' }),
  outputWithSpaces: finished({ outputText: '{ "a": 1 }' }),
  outputWithANeedlessEscape: finished({ outputText: '"\\u0041"' }),
  outputTooLong: finished({ outputText: JSON.stringify('x'.repeat(9_999)) }),
  messageMissing: finished({ outcome: 'failed' }),
  messageNoText: finished({ outcome: 'failed', message: ['no'] }),
  messageTooLong: finished({ outcome: 'failed', message: 'x'.repeat(1_001) }),
  outcomeUnknown: finished({ outcome: 'constructor' }),
  outcomeOfTheParent: finished({ outcome: 'interrupted' }),
  resultMissing: (id, send) => {
    send({ kind: 'finished', id });
  },
  aboutAnother: (id, send) => {
    send({ kind: 'finished', id: id + 1, result: TRUTH });
  },
  kindUnknown: (id, send) => send({ kind: 'ready', id }),
  reportNull: (_id, send) => send(null),
  reportNumber: (_id, send) => send(1),
  reportText: (_id, send) => send('finished'),
};

/** Never ends the run. */
export const NEVER_ENDING = (): void => {
  for (;;);
};

/** Takes 600 MB outside of V8's heap, and never ends the run. */
export const GREEDY = (): void => {
  const taken: Buffer[] = [];
  for (;;) if (taken.length < 60) taken.push(Buffer.alloc(10_000_000, 1));
};

/** The same as bytes of the channel that are no reports at all. */
export const NO_REPORTS: Record<string, () => void> = {
  reportNoJson: () => void writeSync(3, 'finished\n'),
  reportWithoutEnd: () => {
    const megabyte = Buffer.alloc(1_048_576, 'x');
    for (;;) write(megabyte);
  },
};

function write(bytes: Buffer): void {
  try {
    writeSync(3, bytes);
  } catch {
    // The parent has not read the bytes before yet.
  }
}
