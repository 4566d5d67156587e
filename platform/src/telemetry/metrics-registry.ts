import client, { type Counter, type Gauge, type Histogram } from '@prometheus-io/client';
import { setImmediate as nextTurn, setTimeout as delay } from 'node:timers/promises';
import type { Log } from '../core/log.ts';
import { withTimeout } from '../core/with-timeout.ts';
import { serveMetrics } from './metrics-listener.ts';
import { PROCESS_METRICS, watchProcess } from './metrics-process.ts';
import type { Metric, OpenMetrics, Reading } from './metrics.ts';

/** Prometheus waits for ten seconds, and a scrape may wait for this one, which is shared, and for its own. */
const READ_MS = 3_000;
/** Rendering takes some milliseconds, and nobody needs it more often than this. */
const RENDER_INTERVAL_MS = 100;

type Reader = () => readonly Reading[] | Promise<readonly Reading[]>;
type Registered = Counter<string> | Gauge<string> | Histogram<string>;

/** @throws StartError when the address cannot be listened on */
export async function startMetrics(
  name: string,
  listen: string,
  declared: readonly Metric[],
  log: Log,
): Promise<OpenMetrics> {
  const registry = new client.Registry();
  // rules and dashboard need it, whatever labels a Prometheus gives its targets
  registry.setDefaultLabels({ program: name });
  const registered = new Map<Metric, Registered>(
    [...PROCESS_METRICS, ...declared].map((metric) => [metric, register(metric, registry)]),
  );
  const readers = new Map<Reader, readonly Reading[]>();
  let rendering: Promise<string> | undefined;
  let begunAtMs = -Infinity;

  /** Replaces what the reader said before; what it does not say any longer is gone. */
  async function ask(read: Reader): Promise<void> {
    const found = await withTimeout(Promise.resolve().then(read), READ_MS).catch((error: unknown) => {
      log.debug({ error: String(error) }, 'some metrics cannot be read');
      return [];
    });
    for (const { metric, labels } of readers.get(read) ?? []) registered.get(metric)!.remove(labels);
    for (const { metric, labels, value } of found) {
      const target = registered.get(metric) as Counter<string>;
      target.inc(labels, value);
    }
    readers.set(read, found);
  }

  /** One metric after the other, between which requests have their turn. */
  async function render(): Promise<string> {
    await delay(Math.max(0, begunAtMs + RENDER_INTERVAL_MS - performance.now()), undefined, { ref: false });
    begunAtMs = performance.now();
    await Promise.all([...readers.keys()].map(ask));
    const texts: string[] = [];
    for (const metric of registered.values()) {
      texts.push(await registry.getMetricsAsString(metric));
      await nextTurn();
    }
    return `${texts.join('\n\n')}\n`;
  }

  /** Scrapes that come at once share one text. */
  const text = (): Promise<string> =>
    (rendering ??= render().finally(() => {
      rendering = undefined;
    }));

  const server = await serveMetrics(name, listen, text, log);
  const metrics: OpenMetrics = {
    isOn: true,
    address: server.address,
    add: (counter, labels, by = 1) => (registered.get(counter) as Counter<string>).inc(labels, by),
    observe: (histogram, labels, value) => (registered.get(histogram) as Histogram<string>).observe(labels, value),
    read: (read) => void readers.set(read, []),
    async close() {
      unwatch();
      await server.close();
    },
  };
  const unwatch = watchProcess(metrics);
  return metrics;
}

function register({ type, name, help, labels, buckets }: Metric, registry: client.Registry): Registered {
  const options = { name, help, labelNames: labels, registers: [registry] };
  if (type === 'counter') return new client.Counter(options);
  if (type === 'gauge') return new client.Gauge(options);
  return new client.Histogram({ ...options, ...(buckets && { buckets: [...buckets] }) });
}
