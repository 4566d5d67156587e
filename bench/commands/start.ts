import { temporaryFolder } from 'platform/service/testing.ts';
import { childrenOf } from '../../test/support/process-tree.ts';
import { startStack, type Stack } from '../../test/support/stack.ts';
import { pssOf } from '../measure/processes.ts';

/**
 * Prints the seconds to the first 200 and the memory of all processes, for a first start and a second one on its data.
 */
export async function measureStart(): Promise<void> {
  const folder = temporaryFolder();
  for (const name of ['first start', 'second start']) {
    const since = Date.now();
    const stack = await startStack({ folder: folder.path });
    const { status } = await fetch(`${stack.baseUrl}/healthz`);
    if (status !== 200) throw new Error(`/healthz answered ${status}`);
    process.stdout.write(
      `${name}: ${((Date.now() - since) / 1000).toFixed(1)} s to the first 200; ${memoryOf(stack)}\n`,
    );
    await stack.stop();
  }
  folder.remove();
}

function memoryOf(stack: Stack): string {
  const launcher = stack.launcher.pid as number;
  const pids = [launcher, ...childrenOf(launcher)];
  const sizes = pids.map((pid) => Math.round(pssOf(pid)));
  return `${sizes.reduce((sum, size) => sum + size, 0)} MB proportional set size in all (${sizes.join(' + ')})`;
}
