import type { AnswerFrame } from 'proto/platform/v1/calls.ts';

/** A reply of more bytes is sent in pieces, so that the replies of other calls come between them. */
const PIECE_BYTES = 65_536;
const MESSAGE_BYTES = 262_144;

/** Answers of all calls of a stream, until they are written. */
export interface AnswerQueue {
  readonly isEmpty: boolean;
  /** @param answer a whole reply, an error, or the end of a server-streaming call */
  push(answer: AnswerFrame): void;
  /** Nobody waits for the rest of a long reply. */
  drop(id: number): void;
  /** Takes the frames of one message. Of each call, they are in the order in which they were pushed. */
  shift(): AnswerFrame[];
}

export function makeAnswerQueue(): AnswerQueue {
  const short: AnswerFrame[] = [];
  /** Replies of which pieces are left, and what the same call answers after them. The first one is next. */
  const long: { answer: AnswerFrame; from: number; next: AnswerFrame[] }[] = [];

  function push(answer: AnswerFrame): void {
    const before = long.find((one) => one.answer.id === answer.id);
    if (before) before.next.push(answer);
    else if (answer.reply.length > PIECE_BYTES) long.push({ answer, from: 0, next: [] });
    else short.push(answer);
  }

  return {
    get isEmpty() {
      return short.length === 0 && long.length === 0;
    },
    push,
    drop(id) {
      const at = long.findIndex(({ answer }) => answer.id === id);
      if (at >= 0) long.splice(at, 1);
    },
    shift() {
      const frames: AnswerFrame[] = [];
      for (let bytes = 0; bytes < MESSAGE_BYTES && short.length > 0;) {
        const frame = short.shift()!;
        bytes += frame.reply.length;
        frames.push(frame);
      }
      const one = long.shift();
      if (one) {
        const to = one.from + PIECE_BYTES;
        const more = to < one.answer.reply.length;
        frames.push({ ...one.answer, reply: one.answer.reply.subarray(one.from, to), more });
        if (more) long.push({ ...one, from: to });
        else one.next.forEach(push);
      }
      return frames;
    },
  };
}
