import type { Message } from 'proto/agents/v1/agents.ts';

export const MAX_MESSAGES = 100;
/** Of one message. */
const MAX_CHARACTERS = 2_000;
/** Of all messages of a run. */
const MAX_CHARACTERS_IN_ALL = 16_384;

/** The trace of a run, from the texts that its agent wrote: as many and as much of them as is kept. */
export function messagesOf(texts: readonly string[]): Message[] {
  let left = MAX_CHARACTERS_IN_ALL;
  return texts.slice(0, MAX_MESSAGES).flatMap((written) => {
    const text = written.slice(0, Math.min(left, MAX_CHARACTERS)).toWellFormed();
    left -= text.length;
    return text === '' && written !== '' ? [] : [{ role: 'agent', parts: [{ type: 'text', text }] }];
  });
}
