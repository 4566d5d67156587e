import type { Env } from 'platform/core/config.ts';
import { composeStatus } from './docker.ts';
import { STAND_IN } from './mongodb.ts';
import { SERVERS } from './servers.ts';
import { readState, runningOf } from './state.ts';

/** A line for each server, and whether all run as `up` started them and answer. */
export async function status(engines: string, env: Env): Promise<{ text: string; allUp: boolean }> {
  const state = readState(engines);
  if (state.docker) return composeStatus(env);
  const servers = await Promise.all(
    SERVERS.map(async (spec) => {
      const known = runningOf(state, spec);
      const { port = 0 } = state.servers[spec.key] ?? {};
      const answers = known !== undefined && (await spec.answers(port).catch(() => false));
      return { spec, answers, where: known ? `127.0.0.1:${port}  pid ${known.pid}` : 'is not running' };
    }),
  );
  const lines = servers.map(({ spec, answers, where }) =>
    [
      spec.name.padEnd(8),
      where,
      ...(where.startsWith('127') && !answers ? ['does not answer'] : []),
      ...(spec.key === 'mongodb' ? [STAND_IN] : []),
    ].join('  '),
  );
  return { text: `${lines.join('\n')}\n`, allUp: servers.every(({ answers }) => answers) };
}
