import type { Redis } from 'ioredis';
import { StartError } from 'platform/core/start-error.ts';

const MIN_MAJOR = 7;

/**
 * Tries every command that ledger.lua uses on a key of its own. If the user were not allowed one of them, the ledger's
 * script would fail half-way and leave half a change.
 */
const PROBE = `local key = KEYS[1]
local try = redis.call
try('TIME') try('DEL', key)
try('HSET', key, 'f', '1') try('HMGET', key, 'f') try('PEXPIRE', key, 60000) try('PERSIST', key) try('DEL', key)
try('SADD', key, 'm') try('SUNION', key) try('SREM', key, 'm')
try('ZADD', key, 1, 'm') try('ZRANGE', key, 0, -1) try('ZRANGEBYSCORE', key, '-inf', 1) try('ZREM', key, 'm')
try('XADD', key, '1-0', 'f', '1') try('XRANGE', key, '-', '+') try('XREVRANGE', key, '+', '-')
try('XTRIM', key, 'MINID', '1-0') try('DEL', key)`;

/**
 * Checks that this server keeps what it acknowledges and allows what the ledger needs. Resolves to warnings for the
 * log.
 * @throws StartError; ReplyError where the user lacks a permission
 */
export async function checkServer(
  redis: Redis,
  host: string,
  keyPrefix: string,
  unsafe: 'refuse' | 'allow',
): Promise<string[]> {
  const info = await redis.info();
  const fact = (name: string): string => new RegExp(`^${name}:(.*?)\r?$`, 'm').exec(info)?.[1] ?? '';
  const version = fact('redis_version');
  if (Number.parseInt(version) < MIN_MAJOR)
    throw new StartError(`Redis at ${host} is version ${version}; version ${MIN_MAJOR} or newer is needed`);
  if (fact('cluster_enabled') === '1')
    throw new StartError(
      `Redis at ${host} is a node of a cluster; REDIS_URL takes a single server or the address in front of a primary`,
    );
  if (fact('role') !== 'master') throw new StartError(`Redis at ${host} is a replica; REDIS_URL takes the primary`);

  await probe(redis, `${keyPrefix}:{probe}`);

  const faults = [
    ...(fact('aof_enabled') === '1' ? [] : ['does not run with appendonly yes']),
    ...(fact('maxmemory_policy') === 'noeviction' ? [] : ['does not run with maxmemory-policy noeviction']),
  ];
  const fault = `Redis at ${host} ${faults.join(' and ')}, so it may forget credits that it acknowledged`;
  if (faults.length > 0 && unsafe === 'refuse')
    throw new StartError(`${fault}; REDIS_UNSAFE=allow starts all the same`);
  return [...(faults.length > 0 ? [fault] : []), ...(await fsyncWarning(redis, host))];
}

/** Ignores errors other than missing permissions: a full memory, for example, may be temporary. @throws ReplyError */
async function probe(redis: Redis, key: string): Promise<void> {
  const error = await redis
    .script('LOAD', PROBE)
    .then((sha) => redis.evalsha(sha as string, 1, key))
    .then(
      () => undefined,
      (reason: Error) => reason,
    );
  if (error && isForbidden(error.message)) throw error;
}

/** Whether the error says that the user lacks a permission. Redis words it differently inside a script. */
export const isForbidden = (message: string): boolean =>
  /NOPERM|ACL failure|user executing the script can't/.test(message);

/** INFO does not contain appendfsync, and a managed server may forbid CONFIG: then there is no warning. */
async function fsyncWarning(redis: Redis, host: string): Promise<string[]> {
  const [, value] = (await redis.config('GET', 'appendfsync').catch(() => [])) as string[];
  if (value === undefined || value === 'always') return [];
  const loss = 'a power cut may lose the last seconds (appendfsync always keeps them)';
  return [`Redis at ${host} runs with appendfsync ${value}: ${loss}`];
}
