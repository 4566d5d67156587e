import { choice, integer, path, text, type ConfigOf } from '../core/config.ts';

const URL_FORM: [string, RegExp] = ['a URL that begins with http:// or https://', /^https?:\/\/[^\s?#]+$/];
const PAIRS_FORM: [string, RegExp] = [
  'pairs such as name=value, with commas between them',
  /^\s*[^\s=,]+=[^,]*(,\s*[^\s=,]+=[^,]*)*$/,
];

/** Settings of traces, with the names that the OpenTelemetry specification gives them. */
export const tracesConfig = {
  OTEL_EXPORTER_OTLP_ENDPOINT: text({
    default: '',
    form: URL_FORM,
    description: 'URL of an OpenTelemetry collector; traces go to v1/traces below it. Empty: no traces.',
  }),
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: text({
    default: '',
    form: URL_FORM,
    description: 'Whole URL that traces are sent to, instead of v1/traces below OTEL_EXPORTER_OTLP_ENDPOINT.',
  }),
  OTEL_EXPORTER_OTLP_PROTOCOL: choice({
    default: 'http/protobuf',
    values: ['http/protobuf', 'http/json'],
    description: 'How traces are sent.',
  }),
  OTEL_EXPORTER_OTLP_HEADERS: text({
    default: '',
    secret: true,
    form: PAIRS_FORM,
    description: 'Headers for the collector, such as its key: name=value, percent-encoded and comma-separated.',
  }),
  OTEL_EXPORTER_OTLP_CERTIFICATE: path({
    default: '',
    description: "Certificates (PEM) by which the collector's own is checked; empty: those that Node.js knows.",
  }),
  OTEL_EXPORTER_OTLP_TIMEOUT: integer({
    default: 10_000,
    min: 100,
    max: 60_000,
    description: 'Milliseconds after which sending some spans is given up, repetitions included.',
  }),
  OTEL_TRACES_SAMPLER: choice({
    default: 'parentbased_traceidratio',
    values: ['parentbased_traceidratio', 'parentbased_always_on', 'parentbased_always_off', 'always_on', 'always_off'],
    description: 'Which requests are traced; with parentbased, a process does as its caller does.',
  }),
  OTEL_TRACES_SAMPLER_ARG: text({
    default: '0.01',
    form: ['a number from 0 to 1', /^(0|1|0?\.\d{1,9}|1\.0{1,9})$/],
    description: 'Share of the requests that are traced, for parentbased_traceidratio.',
  }),
  OTEL_RESOURCE_ATTRIBUTES: text({
    default: '',
    form: PAIRS_FORM,
    description:
      'What is told of this process beside its name, such as deployment.environment.name=production: name=value, ' +
      'percent-encoded and comma-separated.',
  }),
  OTEL_BSP_SCHEDULE_DELAY: integer({
    default: 5_000,
    min: 10,
    max: 60_000,
    description: 'Milliseconds between sending some spans and sending the next.',
  }),
  OTEL_BSP_MAX_QUEUE_SIZE: integer({
    default: 2_048,
    min: 1,
    max: 65_536,
    description: 'Spans that wait at most to be sent; further ones are dropped.',
  }),
  OTEL_BSP_MAX_EXPORT_BATCH_SIZE: integer({
    default: 512,
    min: 1,
    max: 8_192,
    description: 'Spans that are sent at once.',
  }),
};
export type TracesConfig = ConfigOf<typeof tracesConfig>;

/** Where traces are sent; empty: nowhere. */
export const tracesUrl = (config: TracesConfig): string =>
  config.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT ||
  (config.OTEL_EXPORTER_OTLP_ENDPOINT && `${config.OTEL_EXPORTER_OTLP_ENDPOINT.replace(/\/$/, '')}/v1/traces`);

/** "name=value,name=value" as names and values. */
export const pairsIn = (list: string): Record<string, string> =>
  Object.fromEntries(
    list
      .split(',')
      .filter((pair) => pair.trim() !== '')
      .map((pair) => [pair.slice(0, pair.indexOf('=')).trim(), decoded(pair.slice(pair.indexOf('=') + 1).trim())]),
  );

function decoded(value: string): string {
  try {
    return decodeURIComponent(value);
  } catch {
    return value;
  }
}
