import { settingOf } from './processes.ts';

/** Why a process cannot start: its message is one sentence for the person who starts it, shown without a stack. */
export class StartError extends Error {
  override readonly name = 'StartError';
}

/** An address that cannot be listened on. `process` is the process that wants it. */
export function addressFault(process: string, listen: string, error: Error): StartError {
  const why = error.message.includes('EADDRINUSE')
    ? 'is in use by another program'
    : `cannot be listened on (${error.message})`;
  return new StartError(`The address ${listen} ${why}; ${settingOf(process, 'LISTEN')} sets another`);
}
