import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { SCENARIOS } from '../load/scenarios.ts';
import { figure, printTable, type Findings } from '../measure/report.ts';
import { readConfig } from 'platform/core/config.ts';
import { newId } from 'platform/core/ids.ts';
import { makeLog } from 'platform/core/log.ts';
import { startTraces } from 'platform/telemetry/start-traces.ts';
import { tracesConfig } from 'platform/telemetry/traces-config.ts';
import { inScope, inSpan, isTracing, openSpan, scopeOfRequest, traceparent } from 'platform/telemetry/traces.ts';
import type { Settings } from '../settings.ts';
import { startProduct, type Product } from '../systems/product.ts';
import { compare } from './compare.ts';

const MEASURED = [SCENARIOS.get!, SCENARIOS.create!, SCENARIOS.run!];

/** CPU of a request without traces, with the default share of requests traced, and with all. */
export async function measureTraces(settings: Settings): Promise<Findings> {
  const collector = createServer((request, response) => {
    request.resume().on('end', () => response.end());
  });
  await new Promise<void>((resolve) => collector.listen(0, '127.0.0.1', resolve));
  const { port } = collector.address() as AddressInfo;
  const on = { OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}` };
  const systems = Object.entries<Record<string, string>>({
    'traces off': {},
    'traces on': on,
    'all traced': { ...on, OTEL_TRACES_SAMPLER: 'always_on' },
  });
  const products: Product[] = [];
  try {
    for (const [name, env] of systems) products.push(await startProduct({ name, objects: settings.objects, env }));
    for (const [name, env] of systems) await measureScopes(name, env);
    const findings = await compare(products, MEASURED, settings);
    process.stdout.write('\n');
    const cpu = (system: string, scenario: string): number => findings.figures[`${system} ${scenario} cpu`]!;
    printTable(
      ['CPU of a request, relative to that without traces', ...systems.map(([name]) => name)],
      MEASURED.map(({ name }) => [
        name,
        ...systems.map(([system]) => figure(cpu(system, name) / cpu('traces off', name), 3)),
      ]),
    );
    return findings;
  } finally {
    for (const product of products) await product.stop();
    collector.close();
  }
}

const GETS = 50_000;
const ATTRIBUTES = () => ({ 'rpc.system.name': 'grpc', 'rpc.method': 'an.Rpc/Method' });
const command = () =>
  inSpan('client', 'find objects', ATTRIBUTES, () => new Promise<void>((resolve) => setImmediate(resolve)));
const call = (work: () => Promise<void>): Promise<void> =>
  inSpan('client', 'a call', ATTRIBUTES, async () => {
    const header = traceparent();
    await (isTracing() ? inSpan('server', 'a call', ATTRIBUTES, work, scopeOfRequest(header, '')) : work());
  });

/** What all processes together do for the traces of a get, and nothing else: a whole product has too much noise. */
async function measureScopes(name: string, env: Record<string, string>): Promise<void> {
  const config = readConfig(tracesConfig, { OTEL_BSP_MAX_QUEUE_SIZE: '65536', ...env });
  const stop = await startTraces(config, { service: 'bench', instanceId: 'bench', log: makeLog('bench', 'silent') });
  async function gets(count: number): Promise<void> {
    for (let n = 0; n < count; n++) {
      const requestId = newId();
      const work = async () => {
        await call(command);
        await call(() => command().then(command));
      };
      if (!isTracing()) {
        await work();
        continue;
      }
      const scope = scopeOfRequest('', requestId, () => true);
      const span = openSpan('server', 'GET', ATTRIBUTES(), scope);
      await inScope(span?.scope ?? scope, work);
      span?.end();
    }
  }
  await gets(GETS / 2);
  const before = process.cpuUsage();
  await gets(GETS);
  const { user, system } = process.cpuUsage(before);
  await stop();
  process.stdout.write(`${name}: ${figure((user + system) / GETS, 1)} µs of CPU for the scopes and spans of a get\n`);
}
