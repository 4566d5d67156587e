import type { Log } from '../core/log.ts';
import { tracesUrl, type TracesConfig } from './traces-config.ts';
import { useSpanWriter } from './traces.ts';

/** How long a process that ends waits for its last spans to be taken. */
const FLUSH_MS = 1_000;

/**
 * Turns traces on if there is somewhere to send them to; only then is OpenTelemetry loaded.
 * @returns what sends the last spans, and gives up after a second
 */
export async function startTraces(
  config: TracesConfig,
  given: { service: string; instanceId: string; log: Log },
): Promise<() => Promise<void>> {
  if (tracesUrl(config) === '') return async () => undefined;
  const { openOtlp } = await import('./otlp.ts');
  const { writer, close } = openOtlp(config, given);
  useSpanWriter(writer);
  return async () => {
    const closed = close().catch(() => undefined);
    let timer: NodeJS.Timeout | undefined;
    await Promise.race([closed, new Promise((resolve) => (timer = setTimeout(resolve, FLUSH_MS)))]);
    clearTimeout(timer);
    useSpanWriter(undefined);
  };
}
