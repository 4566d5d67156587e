import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { describeConfig, readConfig, type Env } from 'platform/core/config.ts';
import { mainFileOf, type ChildSpec } from './child.ts';
import { forNode } from './environment.ts';
import { heapConfig, heapFlags } from './heap.ts';

const INTRODUCTION = `npm start: runs the gateway and the four services, either on embedded engines
(one SQLite file each) or on the servers that MONGODB_URL, REDIS_URL and KAFKA_BROKERS name
(npm run engines -- up starts such servers).

All settings are environment variables, for example DATA_DIR=/tmp/demo GATEWAY_LISTEN=127.0.0.1:9000 npm start.
Relative paths start at the folder where npm was called. npm start makes the keys of the processes in DATA_DIR/keys and
sets LOG_LEVEL to warn and DRAIN_MS to 5000 by default.
`;

/**
 * Text of `npm start -- --help`: the settings that each process lists itself; a setting that several have is listed
 * once.
 */
export async function helpOf(children: readonly ChildSpec[], env: Env): Promise<string> {
  const listed = await Promise.all(
    children.map(async (child) => ({ name: child.name, settings: await settingsOf(child, env) })),
  );
  const owners = new Map<string, string[]>();
  for (const { name, settings } of listed)
    for (const setting of settings) owners.set(setting, [...(owners.get(setting) ?? []), name]);
  const groups = Map.groupBy(owners.keys(), (setting) => (owners.get(setting) as string[]).join(', '));
  const mostSharedFirst = [...groups].sort(
    ([, [one = '']], [, [other = '']]) => (owners.get(other)?.length ?? 0) - (owners.get(one)?.length ?? 0),
  );
  return [
    INTRODUCTION,
    'every process, when the launcher starts it:',
    describeConfig(heapConfig),
    '',
    ...mostSharedFirst.flatMap(([names, settings]) => [`${names}:`, ...settings, '']),
  ].join('\n');
}

/** Settings that the launcher sets itself. */
const SET_BY_LAUNCHER = /^  (TLS_(CERT|KEY|CA)|REVOKED)_FILE\b/;

/**
 * The settings of a process, each as text: name and default, then its description on the next line. It gets the options
 * of a start, because Node's compile cache holds modules for each set of options, and `npm ci` fills it by this.
 */
async function settingsOf(child: ChildSpec, env: Env): Promise<string[]> {
  const flags = heapFlags(readConfig(heapConfig, {}), child.name);
  const { stdout } = await promisify(execFile)(process.execPath, [...flags, mainFileOf(child), '--help'], {
    encoding: 'utf8',
    env: forNode(env),
  });
  return stdout
    .trimEnd()
    .split(/\n(?=  \w)/)
    .slice(1)
    .filter((setting) => !SET_BY_LAUNCHER.test(setting));
}
