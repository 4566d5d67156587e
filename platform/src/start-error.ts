/** Why a process cannot start: its message is one sentence for the person who starts it, shown without a stack. */
export class StartError extends Error {
  override readonly name = 'StartError';
}
