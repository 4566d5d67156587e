import type { Redis } from 'ioredis';
import { StartError } from 'platform/start-error.ts';

const MIN_MAJOR = 7;

/**
 * Whether this server keeps what it acknowledges; resolves to what is worth a warning.
 * @throws StartError
 */
export async function checkServer(redis: Redis, host: string, unsafe: 'refuse' | 'allow'): Promise<string[]> {
  const info = await redis.info();
  const fact = (name: string): string => new RegExp(`^${name}:(.*?)\r?$`, 'm').exec(info)?.[1] ?? '';
  const version = fact('redis_version');
  if (Number.parseInt(version) < MIN_MAJOR) throw new StartError(`Redis at ${host} is version ${version}; version ${MIN_MAJOR} or newer is needed`);
  if (fact('cluster_enabled') === '1') throw new StartError(`Redis at ${host} is a node of a cluster; REDIS_URL takes a single server or the address in front of a primary`);
  if (fact('role') !== 'master') throw new StartError(`Redis at ${host} is a replica; REDIS_URL takes the primary`);

  const faults = [
    ...(fact('aof_enabled') === '1' ? [] : ['does not run with appendonly yes']),
    ...(fact('maxmemory_policy') === 'noeviction' ? [] : ['does not run with maxmemory-policy noeviction']),
  ];
  const fault = `Redis at ${host} ${faults.join(' and ')}, so it may forget credits that it acknowledged`;
  if (faults.length > 0 && unsafe === 'refuse') throw new StartError(`${fault}; REDIS_UNSAFE=allow starts all the same`);
  return [...(faults.length > 0 ? [fault] : []), ...await fsyncWarning(redis, host)];
}

/** INFO does not tell it, and a managed server may forbid CONFIG. */
async function fsyncWarning(redis: Redis, host: string): Promise<string[]> {
  const [, value] = await redis.config('GET', 'appendfsync').catch(() => []) as string[];
  return value === undefined || value === 'always' ? [] : [`Redis at ${host} runs with appendfsync ${value}: a power cut may lose the last seconds (appendfsync always keeps them)`];
}
