import { readFileSync } from 'node:fs';
import {
  diag,
  DiagLogLevel,
  ROOT_CONTEXT,
  SpanKind as ApiKind,
  SpanStatusCode,
  trace,
  TraceFlags,
} from '@opentelemetry/api';
import { setGlobalErrorHandler } from '@opentelemetry/core';
import { OTLPExporterBase } from '@opentelemetry/otlp-exporter-base';
import { createOtlpHttpExportDelegate, httpAgentFactoryFromOptions } from '@opentelemetry/otlp-exporter-base/node-http';
import {
  JsonTraceSerializer,
  ProtobufTraceSerializer,
  TraceExporterMetricsHelper,
} from '@opentelemetry/otlp-transformer';
import { resourceFromAttributes } from '@opentelemetry/resources';
import {
  AlwaysOnSampler,
  BatchSpanProcessor,
  RandomIdGenerator,
  TracerProvider,
  type SpanExporter,
} from '@opentelemetry/sdk-trace';
import type { Log } from '../core/log.ts';
import { RELEASE } from '../core/release.ts';
import { pairsIn, tracesUrl, type TracesConfig } from './traces-config.ts';
import type { OpenSpan, SpanKind, SpanWriter } from './traces.ts';

const KINDS: Record<SpanKind, ApiKind> = {
  internal: ApiKind.INTERNAL,
  server: ApiKind.SERVER,
  client: ApiKind.CLIENT,
  producer: ApiKind.PRODUCER,
  consumer: ApiKind.CONSUMER,
};
/** No attribute of ours is longer; one that was would be cut. */
const MAX_ATTRIBUTE_LENGTH = 256;
/** Failing exports are logged this often. */
const LOG_MS = 60_000;

interface Process {
  service: string;
  instanceId: string;
  log: Log;
}

/**
 * Sends spans by OTLP over HTTP. The SDK gets all its settings from here and reads no environment. This file is
 * imported only when traces are on.
 */
export function openOtlp(config: TracesConfig, { service, instanceId, log }: Process) {
  logFailures(log);
  const resource = resourceFromAttributes({
    'service.namespace': 'agentmemory',
    ...pairsIn(config.OTEL_RESOURCE_ATTRIBUTES),
    'service.name': service,
    'service.version': RELEASE,
    'service.instance.id': instanceId,
    'telemetry.sdk.language': 'nodejs',
    'telemetry.sdk.name': 'opentelemetry',
  });
  /** The SDK asks for a trace id only within `open`. */
  let rootId = '';
  const ids = new RandomIdGenerator();
  const provider = new TracerProvider({
    resource,
    sampler: new AlwaysOnSampler(),
    idGenerator: { generateTraceId: () => rootId, generateSpanId: () => ids.generateSpanId() },
    spanLimits: { attributeValueLengthLimit: MAX_ATTRIBUTE_LENGTH },
    spanProcessors: [
      new BatchSpanProcessor({
        exporter: exporterOf(config),
        scheduledDelayMillis: config.OTEL_BSP_SCHEDULE_DELAY,
        maxQueueSize: config.OTEL_BSP_MAX_QUEUE_SIZE,
        maxExportBatchSize: Math.min(config.OTEL_BSP_MAX_EXPORT_BATCH_SIZE, config.OTEL_BSP_MAX_QUEUE_SIZE),
        exportTimeoutMillis: config.OTEL_EXPORTER_OTLP_TIMEOUT,
      }),
    ],
  });
  const tracer = provider.getTracer('agentmemory');

  const writer: SpanWriter = {
    isSampled: samplerOf(config),
    open(kind, name, attributes, { traceId, spanId }) {
      rootId = traceId;
      const parent =
        spanId === ''
          ? ROOT_CONTEXT
          : trace.setSpanContext(ROOT_CONTEXT, { traceId, spanId, traceFlags: TraceFlags.SAMPLED });
      return openSpanOf(tracer.startSpan(name, { kind: KINDS[kind], attributes }, parent));
    },
  };
  return { writer, close: () => provider.shutdown() };
}

function openSpanOf(span: ReturnType<ReturnType<TracerProvider['getTracer']>['startSpan']>): OpenSpan {
  const { traceId, spanId } = span.spanContext();
  return {
    scope: { traceId, spanId, isSampled: true },
    rename: (name) => void span.updateName(name),
    set: (attributes) => void span.setAttributes(attributes),
    fail({ type, isFault }) {
      span.setAttribute('error.type', type);
      if (isFault) span.setStatus({ code: SpanStatusCode.ERROR });
    },
    end: () => span.end(),
  };
}

function exporterOf(config: TracesConfig): SpanExporter {
  const isJson = config.OTEL_EXPORTER_OTLP_PROTOCOL === 'http/json';
  const ca = config.OTEL_EXPORTER_OTLP_CERTIFICATE && readFileSync(config.OTEL_EXPORTER_OTLP_CERTIFICATE);
  const headers = {
    ...pairsIn(config.OTEL_EXPORTER_OTLP_HEADERS),
    'Content-Type': isJson ? 'application/json' : 'application/x-protobuf',
  };
  return new OTLPExporterBase(
    createOtlpHttpExportDelegate(
      {
        url: tracesUrl(config),
        headers: async () => headers,
        timeoutMillis: config.OTEL_EXPORTER_OTLP_TIMEOUT,
        // one more than the queue ever uses
        concurrencyLimit: 8,
        compression: 'gzip',
        agentFactory: httpAgentFactoryFromOptions({ keepAlive: true, ...(ca && { ca }) }),
      },
      isJson ? JsonTraceSerializer : ProtobufTraceSerializer,
      'otlp_http_span_exporter',
      TraceExporterMetricsHelper,
      undefined,
    ),
  );
}

/**
 * Decides which requests are traced. It draws by chance and not by the trace id, which a client may choose. One
 * decision is enough, because the others follow it.
 */
function samplerOf({ OTEL_TRACES_SAMPLER, OTEL_TRACES_SAMPLER_ARG }: TracesConfig): SpanWriter['isSampled'] {
  const ratio = OTEL_TRACES_SAMPLER.endsWith('always_on')
    ? 1
    : OTEL_TRACES_SAMPLER.endsWith('always_off')
      ? 0
      : Number(OTEL_TRACES_SAMPLER_ARG);
  const draw = (): boolean => Math.random() < ratio;
  return OTEL_TRACES_SAMPLER.startsWith('parentbased') ? (asked = draw()) => asked : draw;
}

/** What the SDK reports: spans that were dropped or not sent. Of its errors, neither the URL nor a reply is logged. */
function logFailures(log: Log): void {
  let loggedAt = -Infinity;
  const warn = (what: unknown): void => {
    if (performance.now() - loggedAt < LOG_MS) return;
    loggedAt = performance.now();
    const { name, code } =
      what instanceof Error ? (what as NodeJS.ErrnoException) : { name: undefined, code: undefined };
    log.warn(name ? { name, code } : { what }, 'traces are lost');
  };
  setGlobalErrorHandler(warn);
  const quiet = (): void => undefined;
  diag.setLogger(
    { error: warn, warn, info: quiet, debug: quiet, verbose: quiet },
    { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true },
  );
}
