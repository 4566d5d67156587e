import { isAddress, type Env } from 'platform/core/config.ts';
import { PROCESSES, settingOf, type ProcessName } from 'platform/core/processes.ts';
import { StartError } from 'platform/core/start-error.ts';

/** An address to listen on -> one to call: "every interface" is reached on this machine's own. */
export const reachable = (listen: string): string =>
  listen.replace(/^0\.0\.0\.0:/, '127.0.0.1:').replace(/^\[::\]:/, '[::1]:');

/**
 * Where the processes find each other: `<NAME>_ADDRESS`, else where `<NAME>_LISTEN` puts them. A malformed `<NAME>_LISTEN`
 * is left to the process that it belongs to.
 * @throws StartError for a service on a port that nobody can know
 */
export function addressesOf(env: Env): Record<string, string> {
  const called = (Object.keys(PROCESSES) as ProcessName[]).filter((name) => name !== 'gateway');
  const addresses = called.flatMap((name) => {
    const given = env[settingOf(name, 'ADDRESS')];
    if (given) return [[settingOf(name, 'ADDRESS'), given]];
    const listen = env[settingOf(name, 'LISTEN')];
    if (!listen || !isAddress(listen)) return [];
    if (listen.endsWith(':0'))
      throw new StartError(
        `${settingOf(name, 'LISTEN')} must name a port, not ${JSON.stringify(listen)}: the other processes find ${name} by it`,
      );
    return [[settingOf(name, 'ADDRESS'), reachable(listen)]];
  });
  return Object.fromEntries(addresses);
}
