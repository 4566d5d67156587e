import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { temporaryFolder } from 'platform/service/testing.ts';
import { freePorts } from '../../test/support/addresses.ts';
import { cpuOf, treePssOf } from '../measure/processes.ts';
import type { startBaseline } from './baseline.ts';
import { addressOf, type System } from './system.ts';

/** A package of its own: `npm ci` of the product replaces or leaves out some of express-gateway's dependencies. */
const FOLDER = join(import.meta.dirname, '../stock');
const PACKAGE = join(FOLDER, 'node_modules/express-gateway');
const START_MS = 60_000;

/**
 * Starts express-gateway as npm gives it, with its own dependencies and settings, whose `proxy` policy sends every
 * request to the baseline. It checks no token.
 */
export async function startStock(baseline: Awaited<ReturnType<typeof startBaseline>>): Promise<System> {
  await installOnce();
  const folder = temporaryFolder();
  cpSync(join(PACKAGE, 'lib/config'), folder.path, { recursive: true });
  cpSync(join(FOLDER, 'gateway.config.yml'), join(folder.path, 'gateway.config.yml'));
  const [port] = (await freePorts(1)) as [number];
  const child = spawn(process.execPath, [join(PACKAGE, 'lib/index.js')], {
    env: {
      EG_CONFIG_DIR: folder.path,
      EG_DISABLE_CONFIG_WATCH: 'true',
      NODE_ENV: 'production',
      NODE_NO_WARNINGS: '1',
      STOCK_PORT: String(port),
      BASELINE_URL: baseline.url,
    },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const pid = child.pid as number;
  const kill = (): void => void child.kill('SIGKILL');
  process.on('exit', kill);
  await untilListening(port, () => child.exitCode !== null);
  return {
    name: 'stock',
    addresses: [addressOf(`http://127.0.0.1:${port}`)],
    accessesOf: baseline.accessesOf,
    runsAgents: false,
    pids: { 'express-gateway': [pid], ...baseline.pids },
    cpu: () => ({ 'express-gateway': cpuOf(pid), ...baseline.cpu() }),
    pssMb: () => treePssOf(pid) + baseline.pssMb(),
    async stop() {
      const ended = once(child, 'exit');
      kill();
      process.off('exit', kill);
      await ended;
      folder.remove();
    },
  };
}

/** Installs exactly what bench/stock/package-lock.json names, without running any script of it. */
async function installOnce(): Promise<void> {
  if (existsSync(PACKAGE)) return;
  process.stderr.write(`installing express-gateway in ${FOLDER}\n`);
  await promisify(execFile)('npm', ['ci', '--prefix', FOLDER, '--ignore-scripts', '--no-fund', '--no-audit'], {
    cwd: FOLDER,
  });
}

async function untilListening(port: number, hasEnded: () => boolean): Promise<void> {
  for (const giveUpAt = Date.now() + START_MS; Date.now() < giveUpAt && !hasEnded(); await delay(100)) {
    const socket = connect(port, '127.0.0.1');
    const isOpen = await Promise.race([
      once(socket, 'connect').then(() => true),
      once(socket, 'close').then(() => false),
    ]).catch(() => false);
    socket.destroy();
    if (isOpen) return;
  }
  throw new Error('express-gateway did not start');
}
