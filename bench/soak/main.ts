import { parseArgs } from 'node:util';
import { expect } from 'expect';
import { soak } from './soak.ts';

const HELP = `npm run soak -- [--minutes N] [--requests N]

Two replicas of every process, on MongoDB, Redis and Kafka that this command starts for itself (npm run engines -- up has
installed them). Every ten minutes, and at least twice: all processes are restarted one after the other under load, then
all replies are compared with the stored records. In a third of the time and in the end an engine is killed.

  --minutes N    how long in all; default 60
  --requests N   requests a second; default 20. All of them are kept, and are compared with the records

The last line says which goals were met. Exits with 1 if one was missed.
`;

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(130));

const { values } = parseArgs({
  options: {
    help: { type: 'boolean', short: 'h' },
    minutes: { type: 'string', default: '60' },
    requests: { type: 'string', default: '20' },
  },
});
const [minutes, requestsPerSecond] = [Number(values.minutes), Number(values.requests)];
if (values.help || !(minutes > 0) || !(requestsPerSecond > 0)) {
  process.stdout.write(HELP);
  if (!values.help) process.exitCode = 2;
} else {
  // the comparisons are those of the tests, which jest gives this
  Object.assign(globalThis, { expect });
  const verdicts = await soak({ minutes, requestsPerSecond });
  process.stdout.write(
    `${verdicts.map(({ goal, isMet, figure }) => `${isMet ? 'met' : 'MISSED'}: ${goal} (${figure})`).join('; ')}\n`,
  );
  process.exit(verdicts.every(({ isMet }) => isMet) ? 0 : 1);
}
