import { settingOf } from './processes.ts';

/** A process cannot start. The message is one sentence for the person who starts it, shown without a stack trace. */
export class StartError extends Error {
  override readonly name = 'StartError';
}

/** The error for an address that cannot be listened on. `process` is the name of the process (see PROCESSES). */
export function addressFault(
  process: string,
  listen: string,
  error: Error,
  setting: Parameters<typeof settingOf>[1] = 'LISTEN',
): StartError {
  const why = error.message.includes('EADDRINUSE')
    ? 'is in use by another program'
    : `cannot be listened on (${error.message})`;
  return new StartError(`The address ${listen} ${why}; ${settingOf(process, setting)} sets another`);
}
