import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { ServiceError, unavailable } from 'platform/core/errors.ts';
import { Notifier } from 'platform/core/notifier.ts';
import type { Log } from 'platform/core/log.ts';
import { StartError } from 'platform/core/start-error.ts';
import { checkServer, isForbidden } from './server.ts';

const SCRIPT = readFileSync(new URL('./ledger.lua', import.meta.url), 'utf8');
const SHA = createHash('sha1').update(SCRIPT).digest('hex');
const MAX_RECONNECT_DELAY_MS = 500;
const PAUSE_MS = 20;
/** Replies of a server that did nothing and will be itself again. */
const PASSING = /^(LOADING|BUSY|READONLY|MASTERDOWN|CLUSTERDOWN|TRYAGAIN|NOSCRIPT)/;
/** Replies of a server that did nothing and needs its administrator. */
const REFUSING = /^(OOM|MISCONF|NOREPLICAS|NOAUTH|WRONGPASS|NOPERM)/;

export interface RedisOptions {
  /** redis://[user:password@]host:port[/db] or rediss:// */
  url: string;
  /** Names the connection in CLIENT LIST. */
  keyPrefix: string;
  /** A call is repeated until it is answered, for so long. */
  timeoutMs: number;
  /** `allow` starts on a server that may forget what it acknowledged. */
  unsafe: 'refuse' | 'allow';
  log: Log;
}

/** A command that was not answered on this connection; whoever sends it may send it again. */
export class UnansweredError extends Error {
  override readonly name = 'UnansweredError';
}

/** One call, over however many connections it takes. */
export interface Attempt {
  /** Too late to send anything. */
  over: boolean;
  /** A change was sent and not answered. */
  unheard: boolean;
}

export interface RedisConnection {
  /** Number of the present connection: what was found out about the data on an earlier one is void. */
  epoch(): number;
  /**
   * Sends until it is answered; `send` must bear being repeated.
   * @throws ServiceError UNAVAILABLE when nothing was done, OUTCOME_UNKNOWN when that cannot be told
   */
  attempt<T>(send: (attempt: Attempt) => Promise<T>): Promise<T>;
  /** The ledger's script, once. `epoch`: on this connection only. `attempt`: it may change something. @throws UnansweredError */
  evaluate(keys: readonly string[], argument: string, on?: { epoch?: number; attempt?: Attempt }): Promise<string[]>;
  /** A plain command, once. @throws UnansweredError */
  command<T>(name: string, ...args: (string | number)[]): Promise<T>;
  close(): void;
}

/** @throws StartError one sentence that names the host, never the password */
export async function openRedisConnection({
  url,
  keyPrefix,
  timeoutMs,
  unsafe,
  log,
}: RedisOptions): Promise<RedisConnection> {
  const host = hostOf(url);
  let epoch = 0;
  const ready = new Notifier();
  let lastError: Error | undefined;
  const redis = new Redis(url, {
    lazyConnect: true,
    connectionName: keyPrefix,
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    // what waits for an answer when a connection ends is rejected at once
    maxRetriesPerRequest: 0,
    connectTimeout: timeoutMs,
    commandTimeout: timeoutMs,
    socketTimeout: timeoutMs,
    retryStrategy: (times) => Math.min(20 * 2 ** times, MAX_RECONNECT_DELAY_MS),
    // a server that was made a replica: find the one that takes writes
    reconnectOnError: (error) => error.message.startsWith('READONLY'),
  });
  redis.on('ready', () => {
    epoch++;
    if (epoch > 1) log.info({ host }, 'connected to Redis again');
    lastError = undefined;
    ready.notify();
  });
  redis.on('error', (error: Error) => {
    if (!lastError && epoch > 0) log.warn({ host, error: error.message }, 'the connection to Redis failed');
    lastError ??= error;
  });
  const warnings = await redis
    .connect()
    .then(() => checkServer(redis, host, keyPrefix, unsafe))
    .catch((error: Error) => {
      redis.disconnect();
      throw error instanceof StartError ? error : refusalOf(host, lastError ?? error);
    });
  for (const warning of warnings) log.warn({ host }, warning);

  async function sent<T>(command: () => Promise<T>, attempt?: Attempt): Promise<T> {
    if (redis.status !== 'ready') throw new UnansweredError('not connected', { cause: lastError });
    const wasUnheard = attempt?.unheard ?? false;
    if (attempt) attempt.unheard = true;
    try {
      const answer = await command();
      if (attempt) attempt.unheard = false;
      return answer;
    } catch (cause) {
      // its arguments, which are not for the log
      delete (cause as { command?: unknown }).command;
      const { name, message } = cause as Error;
      const replied = name === 'ReplyError';
      if (attempt && (replied || message.startsWith("Stream isn't writeable"))) attempt.unheard = wasUnheard;
      if (!replied || PASSING.test(message)) throw new UnansweredError(message, { cause });
      throw REFUSING.test(message) ? ledgerUnavailable(cause) : cause;
    }
  }

  const evaluate: RedisConnection['evaluate'] = async (keys, argument, on) => {
    if (on?.attempt?.over || (on?.epoch !== undefined && on.epoch !== epoch))
      throw new UnansweredError('another connection');
    const run = () => sent(() => redis.evalsha(SHA, keys.length, ...keys, argument) as Promise<string[]>, on?.attempt);
    return run().catch(async (error: Error) => {
      if (error instanceof UnansweredError && error.message.startsWith('NOSCRIPT'))
        await sent(() => redis.script('LOAD', SCRIPT));
      throw error;
    });
  };

  return {
    epoch: () => epoch,
    evaluate,
    command: <T>(name: string, ...args: (string | number)[]) => sent(() => redis.call(name, ...args) as Promise<T>),
    async attempt(send) {
      const attempt: Attempt = { over: false, unheard: false };
      const { promise: late, reject } = Promise.withResolvers<never>();
      late.catch(() => {});
      const endsAt = performance.now() + timeoutMs;
      const timer = setTimeout(() => {
        attempt.over = true;
        reject(new UnansweredError('no answer in time', { cause: lastError }));
      }, timeoutMs);
      try {
        for (;;) {
          try {
            return await Promise.race([send(attempt), late]);
          } catch (error) {
            if (!(error instanceof UnansweredError) || attempt.over) throw error;
            // not in a race with what outlives this call, where each round would stay
            if (redis.status === 'ready') await delay(error.message.startsWith('NOSCRIPT') ? 0 : PAUSE_MS);
            else await ready.wait(ready.count, Math.max(0, endsAt - performance.now()));
            if (attempt.over) throw error;
          }
        }
      } catch (error) {
        if (attempt.unheard) throw new ServiceError('OUTCOME_UNKNOWN', undefined, { cause: error });
        const nothingDone =
          error instanceof UnansweredError || (error instanceof ServiceError && error.reason === 'OUTCOME_UNKNOWN');
        throw nothingDone ? ledgerUnavailable(error) : error;
      } finally {
        attempt.over = true;
        clearTimeout(timer);
      }
    },
    close: () => redis.disconnect(),
  };
}

const ledgerUnavailable = (cause: unknown): ServiceError => unavailable('The credit ledger is not available', cause);

function hostOf(url: string): string {
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  if (!parsed || !/^rediss?:$/.test(parsed.protocol) || !parsed.hostname)
    throw new StartError(
      'REDIS_URL must be redis://host:port or rediss://host:port, with user:password@ before the host where they are needed',
    );
  return parsed.host;
}

function refusalOf(host: string, { message }: Error): StartError {
  if (isForbidden(message))
    return new StartError(
      `Redis at ${host} does not allow what the ledger needs: ${message.replace(/ script: .*/s, '')}`,
    );
  if (/NOAUTH|WRONGPASS|invalid password/i.test(message))
    return new StartError(`Redis at ${host} refuses the credentials in REDIS_URL`);
  if (/timed? ?out/i.test(message)) return new StartError(`Redis at ${host} does not answer`);
  return new StartError(`Redis at ${host} cannot be reached: ${message}`);
}
