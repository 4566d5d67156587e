import { runCommand } from './program.ts';

// of kafkajs, which counts the milliseconds to a moment that has passed: it is harmless, and would be printed at every start
process.removeAllListeners('warning');
process.on('warning', (warning) => {
  if (warning.name !== 'TimeoutNegativeWarning') process.stderr.write(`${warning.name}: ${warning.message}\n`);
});
await runCommand(process.env, process.argv);
