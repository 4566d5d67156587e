import { isAddress, type Env } from 'platform/core/config.ts';
import { PROCESSES, settingOf, type ProcessName } from 'platform/core/processes.ts';
import { StartError } from 'platform/core/start-error.ts';

/**
 * What Node itself and the C library read, and INIT_CWD, to which relative paths refer. Everything else, also what
 * other programs read from the environment of whoever starts this one, is handed to no process that does not ask for
 * it.
 */
const FOR_NODE = [
  'INIT_CWD',
  'LD_LIBRARY_PATH',
  'MALLOC_ARENA_MAX',
  'NODE_COMPILE_CACHE',
  'NODE_EXTRA_CA_CERTS',
  'NODE_OPTIONS',
  'OPENSSL_CONF',
  'SSL_CERT_DIR',
  'SSL_CERT_FILE',
  'TMPDIR',
  'TZ',
];
export const forNode = (env: Env): Record<string, string> => only(FOR_NODE, env);

/** Those of the names that have a value. */
export const only = (names: readonly string[], env: Env): Record<string, string> =>
  Object.fromEntries(
    names.flatMap((name) => {
      const value = env[name];
      return value === undefined ? [] : [[name, value]];
    }),
  );

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
