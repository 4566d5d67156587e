import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { keyFileOf, keyFolderOf, peersFileOf } from 'platform/rpc/keys.ts';
import { settingOf, type ProcessName } from 'platform/core/processes.ts';
import { freePorts } from './addresses.ts';
import { NO_ENGINES } from './shared-engines.ts';
import { REPOSITORY, type Stack } from './stack.ts';

export interface Part {
  address: string;
  child: ChildProcess;
}

/** One more process of a stack on a free port, told what the others are told but for what is given. */
export async function startPart(stack: Stack, part: ProcessName, given: Record<string, string>): Promise<Part> {
  const [port] = await freePorts(1);
  const keys = keyFolderOf(stack.folder);
  const folder = part === 'gateway' ? 'gateway' : `services/${part}`;
  const child = spawn(process.execPath, [join(REPOSITORY, folder, 'src/main.ts')], {
    env: {
      ...process.env,
      NODE_OPTIONS: '',
      LOG_LEVEL: 'silent',
      ...NO_ENGINES,
      ...stack.env,
      KEY_FILE: keyFileOf(keys, part),
      PEERS_FILE: peersFileOf(keys),
      [settingOf(part, 'LISTEN')]: `127.0.0.1:${port}`,
      ...given,
    },
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  const [{ ready }] = (await once(child, 'message')) as [{ ready: string }];
  return { address: ready, child };
}

/** A gateway whose agent runs all go to the first replica of agents. */
export const gatewayToFirstAgents = (stack: Stack): Promise<Part> =>
  startPart(stack, 'gateway', { AGENTS_ADDRESS: stack.env.AGENTS_LISTEN as string });
