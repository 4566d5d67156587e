import type { Env } from 'platform/core/config.ts';
import { composeStatus } from './docker.ts';
import { STAND_IN } from './mongodb.ts';
import { SERVERS } from './servers.ts';
import { readState, runningOf } from './state.ts';

/** A line for each server, and whether all are up: running as `up` started them, and answering. */
export async function status(engines: string, env: Env): Promise<{ text: string; allUp: boolean }> {
  const state = readState(engines);
  if (state.docker) return composeStatus(env);
  const servers = await Promise.all(
    SERVERS.map(async (recipe) => {
      const known = runningOf(state, recipe);
      const { port = 0 } = state.servers[recipe.key] ?? {};
      const answers = known !== undefined && (await recipe.answers(port).catch(() => false));
      return { recipe, answers, where: known ? `127.0.0.1:${port}  pid ${known.pid}` : 'does not run' };
    }),
  );
  const lines = servers.map(({ recipe, answers, where }) =>
    [
      recipe.name.padEnd(8),
      where,
      ...(where.startsWith('127') && !answers ? ['does not answer'] : []),
      ...(recipe.key === 'mongodb' ? [STAND_IN] : []),
    ].join('  '),
  );
  return { text: `${lines.join('\n')}\n`, allUp: servers.every(({ answers }) => answers) };
}
