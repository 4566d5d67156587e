import { MongoClient } from 'mongodb';
import { ENGINES_FOLDER } from '../../dev-servers/src/server-spec.ts';
import { SERVERS } from '../../dev-servers/src/servers.ts';
import { readState, runningOf } from '../../dev-servers/src/state.ts';

/**
 * The servers that MONGODB_URL, REDIS_URL and KAFKA_BROKERS name.
 * @returns their names and the process ids of those that `npm run engines -- up` started; undefined if no setting is
 * set
 * @throws Error if only some of the settings are set
 */
export async function realEngines(): Promise<{ name: string; pids: Record<string, number> } | undefined> {
  const named = SERVERS.filter(({ setting }) => process.env[setting]);
  if (named.length === 0) return undefined;
  if (named.length < SERVERS.length)
    throw new Error(`Set all of ${SERVERS.map(({ setting }) => setting).join(', ')}, or none`);
  const state = readState(ENGINES_FOLDER);
  const own = SERVERS.flatMap((spec) => {
    const running = runningOf(state, spec);
    return running && process.env[spec.setting] === spec.url(state.servers[spec.key]!.port)
      ? [[spec.key, running.pid] as const]
      : [];
  });
  return { name: `${await documentServer()}, Redis, Kafka`, pids: Object.fromEntries(own) };
}

/** @returns for example "MongoDB 8.2.1" or "SecantusDB 0.7.0b3 for mongod" */
async function documentServer(): Promise<string> {
  const client = new MongoClient(process.env.MONGODB_URL as string);
  try {
    const { version, secantusVersion } = await client.db('admin').command({ buildInfo: 1 });
    return secantusVersion ? `SecantusDB ${secantusVersion} for mongod` : `MongoDB ${version}`;
  } finally {
    await client.close();
  }
}
