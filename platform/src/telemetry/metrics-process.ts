import { monitorEventLoopDelay, performance } from 'node:perf_hooks';
import { counter, gauge, reading, type Metrics } from './metrics.ts';

const CPU_SECONDS = counter('process_cpu_seconds_total', 'Processor time of the process, its threads included.');
const START = gauge('process_start_time_seconds', 'When the process started, in seconds since 1970.');
const RESIDENT = gauge('process_resident_memory_bytes', 'Memory of the process that is in RAM.');
const HEAP = gauge('nodejs_heap_size_used_bytes', 'JavaScript objects, garbage included.');
const EXTERNAL = gauge('nodejs_external_memory_bytes', 'Memory of buffers outside of the heap.');
const LOOP_DELAY = gauge(
  'agentmemory_event_loop_delay_seconds',
  'How late the event loop came to a timer in the last ten seconds: the 50th and 99th percentile, and the worst.',
  ['percentile'],
);
const LOOP_BUSY = counter('agentmemory_event_loop_busy_seconds_total', 'Time in which the event loop did not wait.');

export const PROCESS_METRICS = [CPU_SECONDS, START, RESIDENT, HEAP, EXTERNAL, LOOP_DELAY, LOOP_BUSY] as const;

const WINDOW_MS = 10_000;
/** A timer this often; more of them would cost an idle process more than all other metrics. */
const RESOLUTION_MS = 100;

/** @returns what ends it */
export function watchProcess(metrics: Metrics): () => void {
  const histogram = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  histogram.enable();
  const secondsAt = (percentile: number): number =>
    histogram.count === 0 ? 0 : Math.max(0, histogram.percentile(percentile) / 1e9 - RESOLUTION_MS / 1e3);
  const window = () => ({ '50': secondsAt(50), '99': secondsAt(99), '100': secondsAt(100) });
  // a window of its own, so that a second scraper does not take the worst from the first
  let last = window();
  const timer = setInterval(() => {
    last = window();
    histogram.reset();
  }, WINDOW_MS).unref();

  metrics.read(() => {
    const { user, system } = process.cpuUsage();
    const { heapUsed, external } = process.memoryUsage();
    // a stall that goes on is told before its window ends
    const worst = Math.max(last['100'], secondsAt(100));
    return [
      reading(CPU_SECONDS, {}, (user + system) / 1e6),
      reading(START, {}, performance.timeOrigin / 1e3),
      reading(RESIDENT, {}, process.memoryUsage.rss()),
      reading(HEAP, {}, heapUsed),
      reading(EXTERNAL, {}, external),
      ...Object.entries({ ...last, '100': worst }).map(([percentile, value]) =>
        reading(LOOP_DELAY, { percentile }, value),
      ),
      reading(LOOP_BUSY, {}, performance.eventLoopUtilization().active / 1e3),
    ];
  });
  return () => {
    clearInterval(timer);
    histogram.disable();
  };
}
