/** Two consecutive seconds whose numbers of requests differ by less are alike. */
const ALIKE = 0.1;

/**
 * For `isOver` of a closed loop: when two consecutive seconds were alike, or after `maxSeconds`.
 * @param now milliseconds
 */
export function whenSteady(maxSeconds: number, now: () => number = () => performance.now()): () => boolean {
  const end = now() + maxSeconds * 1000;
  let [secondSince, count, before] = [now(), 0, Number.NaN];
  return () => {
    const time = now();
    if (time >= end) return true;
    count += 1;
    const seconds = (time - secondSince) / 1000;
    if (seconds < 1) return false;
    const rate = count / seconds;
    const isSteady = Math.abs(rate - before) < ALIKE * before;
    [secondSince, count, before] = [time, 0, rate];
    return isSteady;
  };
}
