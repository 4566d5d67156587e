import { letIdleConnectionsSleep } from 'platform/events/kafka/idle-connections.ts';
import { runCommand } from './program.ts';

letIdleConnectionsSleep();
await runCommand(process.env, process.argv);
