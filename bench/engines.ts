import { MongoClient } from 'mongodb';
import { ENGINES_FOLDER } from '../dev-servers/src/server-spec.ts';
import { SERVERS } from '../dev-servers/src/servers.ts';
import { readState, runningOf } from '../dev-servers/src/state.ts';

/** The servers that the environment names, with what answers as MongoDB, and the processes of those that `engines up` started. */
export async function realEngines(): Promise<{ name: string; pids: Record<string, number> } | undefined> {
  const named = SERVERS.filter(({ setting }) => process.env[setting]);
  if (named.length === 0) return undefined;
  if (named.length < SERVERS.length)
    throw new Error(`Set all of ${SERVERS.map(({ setting }) => setting).join(', ')}, or none`);
  const state = readState(ENGINES_FOLDER);
  const own = SERVERS.flatMap((recipe) => {
    const running = runningOf(state, recipe);
    return running && process.env[recipe.setting] === recipe.url(state.servers[recipe.key]!.port)
      ? [[recipe.key, running.pid] as const]
      : [];
  });
  return { name: `${await documentServer()}, Redis, Kafka`, pids: Object.fromEntries(own) };
}

/** @returns e.g. "MongoDB 8.2.1", or the name of a stand-in */
async function documentServer(): Promise<string> {
  const client = new MongoClient(process.env.MONGODB_URL as string);
  try {
    const { version, secantusVersion } = await client.db('admin').command({ buildInfo: 1 });
    return secantusVersion ? `SecantusDB ${secantusVersion} for mongod` : `MongoDB ${version}`;
  } finally {
    await client.close();
  }
}
