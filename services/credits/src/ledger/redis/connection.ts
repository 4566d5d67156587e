import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { ServiceError, unavailable } from 'platform/core/errors.ts';
import { Notifier } from 'platform/core/notifier.ts';
import type { Log } from 'platform/core/log.ts';
import { StartError } from 'platform/core/start-error.ts';
import { checkServer, isForbidden } from './check-server.ts';

const SCRIPT = readFileSync(new URL('./ledger.lua', import.meta.url), 'utf8');
const SHA = createHash('sha1').update(SCRIPT).digest('hex');
const MAX_RECONNECT_DELAY_MS = 500;
const RETRY_DELAY_MS = 20;
/** Error replies of a server that did nothing and will recover by itself. */
const TRANSIENT_REPLY = /^(LOADING|BUSY|READONLY|MASTERDOWN|CLUSTERDOWN|TRYAGAIN|NOSCRIPT)/;
/** Error replies of a server that did nothing and needs its administrator. */
const REJECTING_REPLY = /^(OOM|MISCONF|NOREPLICAS|NOAUTH|WRONGPASS|NOPERM)/;

export interface RedisOptions {
  /** redis://[user:password@]host:port[/db] or rediss:// */
  url: string;
  /** Also the connection's name in CLIENT LIST. */
  keyPrefix: string;
  /** How long a call is repeated until it is answered. */
  timeoutMs: number;
  /** Whether to start on a server that may forget what it acknowledged. */
  unsafe: 'refuse' | 'allow';
  log: Log;
}

/** A command was not answered on this connection. It may be sent again. */
export class UnansweredError extends Error {
  override readonly name = 'UnansweredError';
}

/** State of one call, which may be sent several times and over several connections. */
export interface Attempt {
  /** The call has returned or timed out: nothing may be sent any more. */
  ended: boolean;
  /** A change was sent and not answered: its outcome is unknown. */
  unanswered: boolean;
}

export interface RedisConnection {
  /** Number of the present connection. What was verified on an earlier connection must be verified again. */
  epoch(): number;
  /**
   * Calls `send`, which must be idempotent, until it is answered.
   * @throws ServiceError UNAVAILABLE when nothing was done, OUTCOME_UNKNOWN when a change may have been made
   */
  sendUntilAnswered<T>(send: (attempt: Attempt) => Promise<T>): Promise<T>;
  /**
   * Runs ledger.lua once. `epoch`: only on this connection. `attempt`: given when the command may change something.
   * @throws UnansweredError
   */
  runScript(keys: readonly string[], argument: string, on?: { epoch?: number; attempt?: Attempt }): Promise<string[]>;
  /** Sends a plain command once. @throws UnansweredError */
  command<T>(name: string, ...args: (string | number)[]): Promise<T>;
  close(): void;
}

/** @throws StartError in one sentence that names the host, never the password */
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
    // rejects commands that wait for an answer as soon as their connection ends
    maxRetriesPerRequest: 0,
    connectTimeout: timeoutMs,
    commandTimeout: timeoutMs,
    socketTimeout: timeoutMs,
    retryStrategy: (times) => Math.min(20 * 2 ** times, MAX_RECONNECT_DELAY_MS),
    // the server was made a replica: connect again, to the one that takes writes
    reconnectOnError: (error) => error.message.startsWith('READONLY'),
  });
  redis.on('ready', () => {
    epoch++;
    if (epoch > 1) log.info({ host }, 'reconnected to Redis');
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
      throw error instanceof StartError ? error : startErrorOf(host, lastError ?? error);
    });
  for (const warning of warnings) log.warn({ host }, warning);

  async function sendOnce<T>(command: () => Promise<T>, attempt?: Attempt): Promise<T> {
    if (redis.status !== 'ready') throw new UnansweredError('not connected', { cause: lastError });
    const wasUnanswered = attempt?.unanswered ?? false;
    if (attempt) attempt.unanswered = true;
    try {
      const answer = await command();
      if (attempt) attempt.unanswered = false;
      return answer;
    } catch (cause) {
      // the command's arguments must not be logged
      delete (cause as { command?: unknown }).command;
      const { name, message } = cause as Error;
      const replied = name === 'ReplyError';
      if (attempt && (replied || message.startsWith("Stream isn't writeable"))) attempt.unanswered = wasUnanswered;
      if (!replied || TRANSIENT_REPLY.test(message)) throw new UnansweredError(message, { cause });
      throw REJECTING_REPLY.test(message) ? ledgerUnavailable(cause) : cause;
    }
  }

  const runScript: RedisConnection['runScript'] = async (keys, argument, on) => {
    if (on?.attempt?.ended || (on?.epoch !== undefined && on.epoch !== epoch))
      throw new UnansweredError('the call has ended or the connection has changed');
    const run = () =>
      sendOnce(() => redis.evalsha(SHA, keys.length, ...keys, argument) as Promise<string[]>, on?.attempt);
    return run().catch(async (error: Error) => {
      if (error instanceof UnansweredError && error.message.startsWith('NOSCRIPT'))
        await sendOnce(() => redis.script('LOAD', SCRIPT));
      throw error;
    });
  };

  return {
    epoch: () => epoch,
    runScript,
    command: <T>(name: string, ...args: (string | number)[]) => sendOnce(() => redis.call(name, ...args) as Promise<T>),
    async sendUntilAnswered(send) {
      const attempt: Attempt = { ended: false, unanswered: false };
      const { promise: timeout, reject } = Promise.withResolvers<never>();
      timeout.catch(() => {});
      const endsAt = performance.now() + timeoutMs;
      const timer = setTimeout(() => {
        attempt.ended = true;
        reject(new UnansweredError('no answer in time', { cause: lastError }));
      }, timeoutMs);
      try {
        for (;;) {
          try {
            return await Promise.race([send(attempt), timeout]);
          } catch (error) {
            if (!(error instanceof UnansweredError) || attempt.ended) throw error;
            // Promise.race with a longer-lived promise would keep each round's reactions in memory: hence Notifier
            if (redis.status === 'ready') await delay(error.message.startsWith('NOSCRIPT') ? 0 : RETRY_DELAY_MS);
            else await ready.wait(ready.count, Math.max(0, endsAt - performance.now()));
            if (attempt.ended) throw error;
          }
        }
      } catch (error) {
        if (attempt.unanswered) throw new ServiceError('OUTCOME_UNKNOWN', undefined, { cause: error });
        const nothingDone =
          error instanceof UnansweredError || (error instanceof ServiceError && error.reason === 'OUTCOME_UNKNOWN');
        throw nothingDone ? ledgerUnavailable(error) : error;
      } finally {
        attempt.ended = true;
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
      'REDIS_URL must be redis://host:port or rediss://host:port, with user:password@ before the host if it needs them',
    );
  return parsed.host;
}

function startErrorOf(host: string, { message }: Error): StartError {
  if (isForbidden(message))
    return new StartError(
      `Redis at ${host} does not allow what the ledger needs: ${message.replace(/ script: .*/s, '')}`,
    );
  if (/NOAUTH|WRONGPASS|invalid password/i.test(message))
    return new StartError(`Redis at ${host} rejects the credentials in REDIS_URL`);
  if (/timed? ?out/i.test(message)) return new StartError(`Redis at ${host} does not answer`);
  return new StartError(`Redis at ${host} cannot be reached: ${message}`);
}
