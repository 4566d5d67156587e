import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { mainFileOf, type Part } from './child.ts';
import { HELP } from './messages.ts';

/** What can be set, as the processes themselves tell it; what several have in common is told once. */
export async function helpOf(parts: readonly Part[], env: NodeJS.ProcessEnv): Promise<string> {
  const told = await Promise.all(
    parts.map(async (part) => ({ name: part.name, settings: await settingsOf(part, env) })),
  );
  const owners = new Map<string, string[]>();
  for (const { name, settings } of told)
    for (const setting of settings) owners.set(setting, [...(owners.get(setting) ?? []), name]);
  const groups = Map.groupBy(owners.keys(), (setting) => (owners.get(setting) as string[]).join(', '));
  const byBreadth = [...groups].sort(
    ([, [one = '']], [, [other = '']]) => (owners.get(other)?.length ?? 0) - (owners.get(one)?.length ?? 0),
  );
  return [HELP, ...byBreadth.flatMap(([names, settings]) => [`${names}:`, ...settings, ''])].join('\n');
}

/** npm start makes these files itself. */
const OURS = /^  (KEY|PEERS)_FILE\b/;

/** Each a name with its default, and a sentence below. */
async function settingsOf(part: Part, env: NodeJS.ProcessEnv): Promise<string[]> {
  const { stdout } = await promisify(execFile)(process.execPath, [mainFileOf(part), '--help'], {
    encoding: 'utf8',
    env,
  });
  return stdout
    .trimEnd()
    .split(/\n(?=  \w)/)
    .slice(1)
    .filter((setting) => !OURS.test(setting));
}
