import { isAddress, type Env } from 'platform/core/config.ts';
import { PROCESSES, settingOf, type ProcessName } from 'platform/core/processes.ts';
import { StartError } from 'platform/core/start-error.ts';

/** The address at which this machine reaches a listener: "all interfaces" becomes the loopback address. */
export const reachable = (listen: string): string =>
  listen.replace(/^0\.0\.0\.0:/, '127.0.0.1:').replace(/^\[::\]:/, '[::1]:');

/**
 * The `<NAME>_ADDRESS` settings of the services: as given, or else derived from `<NAME>_LISTEN`. The service itself
 * reports a malformed `<NAME>_LISTEN`.
 * @throws StartError for a service that listens on port 0, since the other processes cannot know its port
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
        `${settingOf(name, 'LISTEN')} must name a port, not ${JSON.stringify(listen)}: ` +
          `the other processes find ${name} by it`,
      );
    return [[settingOf(name, 'ADDRESS'), reachable(listen)]];
  });
  return Object.fromEntries(addresses);
}
