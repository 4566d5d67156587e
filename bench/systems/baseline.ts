import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { temporaryFolder } from 'platform/service/testing.ts';
import { cpuOf, treePssOf } from '../measure/processes.ts';
import { createObjects } from './fill.ts';
import { addressOf, type System } from './system.ts';

/** Starts the baseline and creates its objects. */
export async function startBaseline(objects: number): Promise<System & { url: string }> {
  const folder = temporaryFolder();
  const child = fork(join(import.meta.dirname, 'baseline-server.ts'), [folder.path], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  const [{ url }] = (await once(child, 'message')) as [{ url: string }];
  const pid = child.pid as number;
  const addresses = [addressOf(url)];
  const accesses = [{ token: '', objects: await createObjects(addresses, '', objects) }];
  return {
    name: 'baseline',
    url,
    addresses,
    accessesOf: () => accesses,
    runsAgents: false,
    pids: { baseline: [pid] },
    cpu: () => ({ baseline: cpuOf(pid) }),
    pssMb: () => treePssOf(pid),
    async stop() {
      const ended = once(child, 'exit');
      child.disconnect();
      await ended;
      folder.remove();
    },
  };
}
