import { isDeepStrictEqual } from 'node:util';
import type { Log } from './log.ts';

/** How often a process looks for new files. */
export const RELOAD_MS = 1_000;
/** Files that are exchanged one after the other do not fit together for a moment. */
const FAULTS_LOGGED_AT = 5;

/** What a process makes of files, and makes again when they change. */
export interface FollowedFiles<T> {
  current(): T;
  /** Looks at once. Files that are wrong leave everything as it is. @returns whether they are right */
  look(): boolean;
  /** Calls `notify` with each new state. @returns what ends that */
  onChanged(notify: (loaded: T) => void): () => void;
  /** Looks no longer. */
  close(): void;
}

/**
 * Reads files now and whenever they change. Files that are torn, wrong, or do not fit together because only some of
 * them have changed yet, are left for the next time.
 * @param given.load must not put what is secret into the message of an error, which is logged
 * @param given.eachSecond is called with the present state
 * @throws what `read` and `load` throw at the first time
 */
export function followFiles<Texts extends object, T>({
  read,
  load,
  eachSecond,
  log,
  warning,
}: {
  read: () => Texts;
  load: (texts: Texts) => T;
  eachSecond?: (loaded: T) => void;
  log?: Log | undefined;
  warning: string;
}): FollowedFiles<T> {
  let texts = read();
  let loaded = load(texts);
  let faults = 0;
  const listeners = new Set<(loaded: T) => void>();
  function look(): boolean {
    const before = texts;
    try {
      const found = read();
      if (!isDeepStrictEqual(found, texts)) [loaded, texts] = [load(found), found];
      faults = 0;
    } catch (error) {
      faults += 1;
      if (faults === FAULTS_LOGGED_AT) log?.warn({ error }, warning);
    }
    if (texts !== before) for (const notify of listeners) notify(loaded);
    return faults === 0;
  }
  const timer = setInterval(() => {
    eachSecond?.(loaded);
    look();
  }, RELOAD_MS).unref();
  return {
    current: () => loaded,
    look,
    onChanged(notify) {
      listeners.add(notify);
      return () => void listeners.delete(notify);
    },
    close() {
      clearInterval(timer);
      listeners.clear();
    },
  };
}
