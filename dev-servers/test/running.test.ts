import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ServerSpec } from '../src/server-spec.ts';
import { untilAnswering, isRunning, launch } from '../src/running.ts';

const folder = mkdtempSync(join(tmpdir(), 'aks-'));
const log = join(folder, 'log');
const go = join(folder, 'go');
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const COMMAND = [process.execPath, '-e', 'setInterval(() => undefined, 1000)'];
const spec = (answers: () => Promise<boolean>) => ({ name: 'Server', answers }) as unknown as ServerSpec;

describe('untilAnswering', () => {
  it('waits for a process that becomes the server by exec', async () => {
    const child = launch(
      ['sh', '-c', `until [ -e ${go} ]; do sleep 0.01; done; exec ${COMMAND.map((word) => `'${word}'`).join(' ')}`],
      { log, cwd: folder, detached: false },
    );
    const known = { pid: child.pid, command: COMMAND };
    let asked = 0;
    const answered = untilAnswering(
      spec(async () => {
        if (++asked === 2) writeFileSync(go, '');
        return existsSync(go) && isRunning(known);
      }),
      known,
      0,
      log,
    );
    await answered.finally(() => child.kill('SIGKILL'));
    expect(asked).toBeGreaterThan(1);
  });

  it('reports that the process has ended, with the last line of its log', async () => {
    const child = launch(['sh', '-c', 'echo no memory; exit 1'], { log, cwd: folder, detached: false });
    await expect(
      untilAnswering(
        spec(async () => false),
        { pid: child.pid, command: COMMAND },
        0,
        log,
      ),
    ).rejects.toThrow('Server ended before it answered: no memory');
  });
});
