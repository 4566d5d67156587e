import { RELEASE } from 'platform/core/release.ts';
import type { ProcessEndedError } from './child.ts';
import type { Seeded } from './seed.ts';

export const STOPPED = 'Stopped.';

const RUN_BODY =
  '{"agentName":"invoice-total","args":{"items":[{"price":12.5,"quantity":2},{"price":3,"quantity":1}]}}';

/**
 * Printed when everything is ready: the base URL, the token of a first start, and a curl command that runs an agent.
 * @param uptime for example "1.4 s"
 * @param settings environment variables by which the admin command line finds this stack
 */
export function readyMessage({
  baseUrl,
  uptime,
  seeded,
  settings,
}: {
  baseUrl: string;
  uptime: string;
  seeded: Seeded | undefined;
  settings: Readonly<Record<string, string>>;
}): string {
  const admin = [
    ...Object.entries(settings).map(([name, value]) => `${name}=${quoted(value)}`),
    'npm run admin --',
  ].join(' ');
  const credits = seeded?.credits.toLocaleString('en');
  const token = seeded?.token ?? '<your server token>';
  const firstStart = seeded?.token && [
    `First start: created organization "${seeded.organization}" (tier enterprise, ${credits} credits),`,
    `administrator ${seeded.administrator}, functional agents ${seeded.agents.join(', ')}.`,
    '',
    `Server token, shown this once:  ${seeded.token}`,
    '',
  ];
  return [
    '',
    `Ready after ${uptime}: ${baseUrl} (release ${RELEASE})`,
    '',
    ...(firstStart ?? []),
    'Run an agent:',
    `  curl -s ${baseUrl}/api/agent/run -H 'Authorization: Bearer ${token}' -H 'Content-Type: application/json' \\`,
    `    -d '${RUN_BODY}'`,
    '',
    seeded?.token
      ? `Administer it:  ${admin} --help`
      : `Another token:  ${admin} token create <name> --organization demo --as admin@demo.example`,
    '',
    'Ctrl-C stops it; the data is kept.',
  ].join('\n');
}

/** Printed at the first start on a data folder of a version before 0.1.0. */
export const replacedKeysMessage = (removed: readonly string[]): string =>
  `Certificates replace the signing keys of versions before 0.1.0: ${removed.length} files in the folder keys were removed.`;

/** Quoted for a shell if necessary. */
const quoted = (value: string): string => (/^[\w./:@-]+$/.test(value) ? value : `'${value.replaceAll("'", "'\\''")}'`);

/** Why a start failed, one line per fault; a fault that several processes report is one line with all their names. */
export function faultsOf(error: unknown): string[] {
  if (!(error instanceof AggregateError))
    return [`The start failed: ${error instanceof Error ? error.message : String(error)}`];
  const reporters = new Map<string, string[]>();
  for (const { processName, message, faults } of error.errors as ProcessEndedError[]) {
    for (const fault of faults.length > 0 ? faults : [message])
      reporters.set(fault, [...(reporters.get(fault) ?? []), processName]);
  }
  return [...reporters].map(([fault, names]) => `${names.join(', ')}: ${fault}`);
}
