import type { Socket } from 'node:net';

/** A client is looked at so many times during the limit, so that a pause of this process does not count against it. */
const LOOKS = 4;

interface Progress {
  /** Bytes that the operating system has taken for the client. */
  taken: number;
  looksWithout: number;
}

/**
 * Disconnects the clients that take nothing of what is written for them for stallMs.
 * @returns a function that ends the watch
 */
export function watchReaders(sockets: () => Iterable<Socket>, stallMs: number): () => void {
  let slow = new Map<Socket, Progress>();
  const look = (): void => {
    const before = slow;
    slow = new Map();
    for (const socket of sockets()) {
      if (socket.writableLength === 0) continue;
      const taken = socket.bytesWritten - socket.writableLength;
      const last = before.get(socket);
      const looksWithout = last?.taken === taken ? last.looksWithout + 1 : 0;
      if (looksWithout < LOOKS) slow.set(socket, { taken, looksWithout });
      else socket.destroy();
    }
  };
  const timer = setInterval(look, Math.ceil(stallMs / LOOKS)).unref();
  return () => clearInterval(timer);
}
