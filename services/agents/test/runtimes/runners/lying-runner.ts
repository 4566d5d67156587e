import type { Assignment } from '../../../src/runtimes/runners/runner-child.ts';
import { finished, GREEDY, LIES, NEVER_ENDING, NO_REPORTS, type Send } from './lies.ts';

// A runner that lies as the source of its assignment says. It answers any other source with 2, in 3 steps.

process.on('disconnect', () => process.exit());
process.on('message', ({ id, runtime: { source } }: Assignment) => {
  const send: Send = (report) => void process.send!(report);
  if (source === 'neverEnding') NEVER_ENDING();
  if (source === 'greedy') GREEDY();
  (LIES[source] ?? NO_REPORTS[source] ?? finished({}))(id, send);
  if (source === 'reportAfterTheEnd') send({ kind: 'steps', id, steps: 10_000 });
});
