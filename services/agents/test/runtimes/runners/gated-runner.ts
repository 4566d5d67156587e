import { existsSync } from 'node:fs';
import { join } from 'node:path';

// A runner that starts only while the file `open` is beside it. It answers each source with 2, in 3 steps, but "when
// told" only when there is a file `told`.

const pause = new Int32Array(new SharedArrayBuffer(4));
function awaitFile(name: string): void {
  while (!existsSync(join(import.meta.dirname, name))) Atomics.wait(pause, 0, 0, 5);
}
awaitFile('open');

process.on('disconnect', () => process.exit());
process.on('message', ({ id, runtime: { source } }: { id: number; runtime: { source: string } }) => {
  if (source === 'when told') awaitFile('told');
  process.send!({ kind: 'finished', id, result: { outcome: 'succeeded', outputText: '2', steps: 3 } });
});
