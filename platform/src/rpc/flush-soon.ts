/**
 * Makes what calls `flush` once, however often it is called before: when the present callback of the event loop has
 * ended, or the present promise jobs have. What is written in an immediate would leave the process only after the next
 * poll of all sockets: node writes HTTP/2 before it runs immediates.
 */
export function makeFlushSoon(flush: () => void): () => void {
  let willFlush = false;
  const flushInTick = (): void => {
    willFlush = false;
    flush();
  };
  return () => {
    if (willFlush) return;
    willFlush = true;
    process.nextTick(flushInTick);
  };
}
