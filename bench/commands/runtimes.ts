import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { AgentsServiceService } from 'proto/agents/v1/agents.ts';
import { after, runClosedLoop } from '../load/closed-loop.ts';
import { httpText, type BenchRequest } from '../load/requests.ts';
import { whenSteady } from '../load/warm-up.ts';
import { untilDrained } from '../measure/drain.ts';
import { measureRound, totalCpu, type Round } from '../measure/round.ts';
import { medianOf, noFindings, printRounds, type Findings } from '../measure/report.ts';
import type { Settings } from '../settings.ts';
import { startProduct, type Product } from '../systems/product.ts';
import { ratiosOf } from './compare.ts';

/** Each gives its args back. */
const RUNTIMES: Readonly<Record<string, (url: string) => object>> = {
  expression: () => ({ language: 'jsonata', source: '{ "echo": $ }' }),
  script: () => ({ language: 'javascript', source: 'function run(args) { return { echo: args }; }' }),
  http: (url) => ({ url, secretRef: 'signing' }),
  llm: (url) => ({ url, model: 'bench', prompt: '{{args}}' }),
};
const SECRET = `whsec_${Buffer.alloc(32, 'k').toString('base64')}`;

/** CPU per request of a run in each runtime. The endpoint and the model are in this process, which is not counted. */
export async function measureRuntimes(settings: Settings): Promise<Findings> {
  const endpoint = await startEndpoint();
  const product = await startProduct({ name: 'product', objects: 1, env: { AGENT_NETWORKS: '127.0.0.1/32' } });
  try {
    const { port } = endpoint.address() as AddressInfo;
    await publishAgents(product, `http://127.0.0.1:${port}`);
    const { connections, seconds, warmUpSeconds } = settings;
    const target = (type: string) => ({ addresses: product.addresses, next: nextRun(type, product) });
    for (const type of Object.keys(RUNTIMES)) await runClosedLoop(target(type), connections, whenSteady(warmUpSeconds));
    await untilDrained(product.records!);
    const rounds: Round[] = [];
    for (let round = 0; round < settings.rounds; round++)
      for (const type of Object.keys(RUNTIMES)) {
        const run = () => runClosedLoop(target(type), connections, after(seconds));
        rounds.push({ ...(await measureRound(product, run)), system: type });
      }
    printRounds('run, by runtime', rounds);
    const findings = noFindings();
    const byType = Object.keys(RUNTIMES).map((type) => ({
      ...{ type, name: `${type} run` },
      rounds: rounds.filter(({ system }) => system === type),
    }));
    Object.assign(findings.figures, ratiosOf(byType));
    for (const { type, rounds: own } of byType) {
      findings.figures[`${type} run cpu`] = medianOf(own, totalCpu);
      findings.failures.push(...own.flatMap(({ failures }) => failures));
    }
    return findings;
  } finally {
    await product.stop();
    endpoint.close();
  }
}

const nextRun =
  (agentName: string, { tenant }: Product): (() => BenchRequest) =>
  () => ({ kind: 'run', text: httpText('POST', '/api/agent/run', tenant.token, { agentName, args: { n: 1 } }) });

async function publishAgents({ stack, tenant }: Product, url: string): Promise<void> {
  const agents = stack.operator.client(AgentsServiceService, 'agents');
  const as = () => stack.operator.as(tenant.organizationId);
  await agents.setSecret({ name: 'signing', value: SECRET, overlapSeconds: 0 }, as());
  for (const [name, runtimeOf] of Object.entries(RUNTIMES)) {
    const definition = {
      ...{ apiVersion: 'agents/v1', kind: 'FunctionalAgent', name, argumentsSchema: {}, pricing: { base: 1, max: 1 } },
      runtime: { type: name, ...runtimeOf(url) },
    };
    await agents.applyAgent({ definition: JSON.stringify(definition), dryRun: undefined }, as());
    await agents.publishAgent({ name, version: undefined }, as());
  }
}

/** An endpoint of http agents, and a model. */
async function startEndpoint(): Promise<Server> {
  const output = JSON.stringify({ output: { echo: { n: 1 } } });
  const completion = JSON.stringify({
    choices: [{ finish_reason: 'stop', message: { role: 'assistant', content: '{"n":1}' } }],
    usage: { prompt_tokens: 10, completion_tokens: 5 },
  });
  const server = createServer((request, response) => {
    request.resume().on('end', () => response.end(request.url === '/' ? output : completion));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return server;
}
