import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { closedInTheEnd } from 'platform/service/test-end.ts';
import { keyFolderOf, masterKeyFileOf } from 'platform/rpc/keys.ts';
import { tlsSettings } from 'platform/service/process.ts';
import { settingOf, type ProcessName } from 'platform/core/processes.ts';
import { freePorts } from './addresses.ts';
import { NO_ENGINES } from './shared-engines.ts';
import { REPOSITORY, type RunningStack } from './stack.ts';

export interface StackProcess {
  address: string;
  child: ChildProcess;
}

/**
 * Starts one more process of a stack on a free port, with the settings of the others except for those given.
 * @param release.root where its sources are
 * @param release.stderr `pipe`: what it logs can be read from the child
 */
export async function startProcess(
  stack: RunningStack,
  name: ProcessName,
  given: Record<string, string>,
  { root = REPOSITORY, stderr = 'inherit' }: { root?: string; stderr?: 'inherit' | 'pipe' } = {},
): Promise<StackProcess> {
  const [port] = await freePorts(1);
  const keys = keyFolderOf(stack.folder);
  const folder = name === 'gateway' ? 'gateway' : `services/${name}`;
  const child = spawn(process.execPath, [join(root, folder, 'src/main.ts')], {
    env: {
      ...process.env,
      NODE_OPTIONS: '',
      LOG_LEVEL: 'silent',
      ...NO_ENGINES,
      ...stack.env,
      ...tlsSettings(keys, name),
      MASTER_KEY_FILE: masterKeyFileOf(keys),
      [settingOf(name, 'LISTEN')]: `127.0.0.1:${port}`,
      ...given,
    },
    stdio: ['ignore', 'ignore', stderr, 'ipc'],
  });
  closedInTheEnd(() => child.kill('SIGKILL'));
  const [{ ready }] = (await once(child, 'message')) as [{ ready: string }];
  return { address: ready, child };
}

/** Starts a gateway that sends all agent runs to the first replica of the agents service. */
export const startGatewayToFirstAgents = (stack: RunningStack): Promise<StackProcess> =>
  startProcess(stack, 'gateway', { AGENTS_ADDRESS: stack.env.AGENTS_LISTEN as string });
