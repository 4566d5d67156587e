import type { Message } from 'proto/agents/v1/agents.ts';
import { MAX_MESSAGES, MAX_TEXT_CHARACTERS } from './runners/evaluation.ts';

/** Of all messages of a run. */
const MAX_CHARACTERS_IN_ALL = 16_384;

/** The trace of a run, from the texts that its agent wrote: as many and as much of them as is kept. */
export function messagesOf(texts: readonly string[]): Message[] {
  let left = MAX_CHARACTERS_IN_ALL;
  return texts.slice(0, MAX_MESSAGES).flatMap((written) => {
    const text = written.slice(0, Math.min(left, MAX_TEXT_CHARACTERS)).toWellFormed();
    left -= text.length;
    return text === '' && written !== '' ? [] : [{ role: 'agent', parts: [{ type: 'text', text }] }];
  });
}

/**
 * Takes the texts of a run one after another, and keeps of each only what messagesOf does: thousands of long ones,
 * such as the answers of tools, would take all memory.
 * @param redact takes secrets out of a text, before it is cut
 */
export function openTrace(redact: (text: string) => string) {
  const texts: string[] = [];
  return {
    note(text: string): void {
      if (texts.length < MAX_MESSAGES) texts.push(copyOf(redact(text).slice(0, MAX_TEXT_CHARACTERS)));
    },
    messages: (): Message[] => messagesOf(texts),
  };
}

/** For V8, a part of a text holds all of it in memory. */
const copyOf = (text: string): string => Buffer.from(text, 'utf16le').toString('utf16le');
