import type { ProcessEndedError } from './child.ts';
import type { Seeded } from './seed.ts';

export const HELP = `npm start: runs the gateway and the four services on embedded engines, one SQLite file each, or on the servers that
MONGODB_URL, REDIS_URL and KAFKA_BROKERS name (npm run engines -- up brings such servers up).

Everything is set through the environment, for example DATA_DIR=/tmp/demo GATEWAY_LISTEN=127.0.0.1:9000 npm start.
A relative path starts where npm was called. The keys of the processes are made in DATA_DIR/keys; LOG_LEVEL is warn here.
`;

export const farewell = 'Stopped.';

const RUN_BODY =
  '{"agentName":"invoice-total","args":{"items":[{"price":12.5,"quantity":2},{"price":3,"quantity":1}]}}';

/**
 * The last words of a start: the base URL and a curl that runs an agent when pasted.
 * @param settings what the admin command line must be told to find this stack
 */
export function greeting({
  baseUrl,
  seconds,
  seeded,
  settings,
}: {
  baseUrl: string;
  seconds: string;
  seeded: Seeded | undefined;
  settings: Readonly<Record<string, string>>;
}): string {
  const admin = [
    ...Object.entries(settings).map(([name, value]) => `${name}=${quoted(value)}`),
    'npm run admin --',
  ].join(' ');
  const firstStart = seeded?.token && [
    `First start: organization "${seeded.organization}" (tier enterprise, ${seeded.credits.toLocaleString('en')} credits), administrator ${seeded.administrator},`,
    `functional agents ${seeded.agents.join(', ')}.`,
    '',
    `Server token, shown this once:  ${seeded.token}`,
    '',
  ];
  return [
    '',
    `Ready after ${seconds}: ${baseUrl}`,
    '',
    ...(firstStart ?? []),
    'Run an agent:',
    `  curl -s ${baseUrl}/api/agent/run -H 'Authorization: Bearer ${seeded?.token ?? '<your server token>'}' -H 'Content-Type: application/json' \\`,
    `    -d '${RUN_BODY}'`,
    '',
    seeded?.token
      ? `Administer it:  ${admin} --help`
      : `Another token:  ${admin} token create <name> --organization demo --as admin@demo.example`,
    '',
    'Ctrl-C stops it; the data stays.',
  ].join('\n');
}

/** As a shell reads it. */
const quoted = (value: string): string => (/^[\w./:@-]+$/.test(value) ? value : `'${value.replaceAll("'", "'\\''")}'`);

/** Why a start failed, one sentence a line; what several parts say is said once. */
export function faultsOf(error: unknown): string[] {
  if (!(error instanceof AggregateError))
    return [`The start failed: ${error instanceof Error ? error.message : String(error)}`];
  const parts = new Map<string, string[]>();
  for (const { part, message, faults } of error.errors as ProcessEndedError[]) {
    for (const fault of faults.length > 0 ? faults : [message]) parts.set(fault, [...(parts.get(fault) ?? []), part]);
  }
  return [...parts].map(([fault, names]) => `${names.join(', ')}: ${fault}`);
}
