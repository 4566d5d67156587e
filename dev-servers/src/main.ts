import { withoutNegativeTimeouts } from 'platform/events/kafka/client.ts';
import { runCommand } from './program.ts';

withoutNegativeTimeouts();
await runCommand(process.env, process.argv);
