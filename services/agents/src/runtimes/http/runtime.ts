import type { Clock } from 'platform/core/clock.ts';
import type { Violation } from 'platform/core/errors.ts';
import type { FairScheduler } from 'platform/core/fair-scheduler.ts';
import { compileSchema } from 'platform/json-schema/schema.ts';
import { makeRedact } from '../../secrets/redact.ts';
import { noSuchSecret, SECRET_NAME, type SecretValues } from '../../secrets/rules.ts';
import { callEndpoint, DEFAULT_RETRIES, faultOfUrl, retriesSchema } from '../network/call-endpoint.ts';
import { AgentFault, OVERDUE_MS, performOnNetwork } from '../network/network-run.ts';
import type { Poster } from '../network/post.ts';
import type { Turns } from '../network/turns.ts';
import type { RuntimeDefinition } from '../rules.ts';
import type { RunRequest, Runtime } from '../runtime.ts';
import { answerOf } from './answer.ts';
import { faultOfSigningSecret, KEY_PREFIX, signatureHeaders, signingKeyOf } from './signature.ts';

interface Endpoint extends RuntimeDefinition {
  url: string;
  /** Name of the secret that signs the calls. */
  secretRef: string;
  /** How often a call is repeated at most. */
  retries?: number;
}

export interface HttpNeeds {
  poster: Poster;
  turns: Turns;
  secretValues: SecretValues;
  schedule: FairScheduler;
  clock: Clock;
  /** Networks that may be called beside the public internet. */
  networks: readonly string[];
}

const schema = {
  description:
    "The customer's endpoint, called with the args by a signed POST (Standard Webhooks). With `tools`, the call has a " +
    'callback token for the REST API.',
  examples: [{ type: 'http', url: 'https://agents.example.com/invoices', secretRef: 'invoices-signing', retries: 2 }],
  type: 'object',
  required: ['type', 'url', 'secretRef'],
  additionalProperties: false,
  properties: {
    type: { const: 'http', description: 'The name of the runtime.' },
    url: { type: 'string', minLength: 1, maxLength: 2_048, description: 'The endpoint, by https.' },
    secretRef: { type: 'string', pattern: SECRET_NAME, description: 'The secret that signs the calls.' },
    retries: retriesSchema,
  },
};
const compiled = compileSchema(JSON.stringify(schema));
/** What an answer may have beside its output, without and with messages. */
const [ENVELOPE_BYTES, TRACE_BYTES] = [4_096, 65_536];

/** Agents that are endpoints of the customer, called by signed requests (Standard Webhooks 1.0). */
export function httpRuntime(needs: HttpNeeds): Runtime {
  const stopping = new AbortController();
  return {
    schema,
    units: ['calls'],
    takesTools: true,
    overdueMs: OVERDUE_MS,
    check: (organizationId, runtime) => violationsOf(needs, organizationId, runtime),
    run(request) {
      const usage = { calls: 0 };
      const { turns } = needs;
      return performOnNetwork(request, { turns, stopping: stopping.signal, usage }, (signal) =>
        call(needs, request, usage, signal),
      );
    },
    stop() {
      stopping.abort();
      needs.poster.close();
      return Promise.resolve();
    },
  };
}

async function violationsOf(
  { secretValues, networks }: Pick<HttpNeeds, 'secretValues' | 'networks'>,
  organizationId: string,
  runtime: unknown,
): Promise<Violation[]> {
  const violations = compiled.validate(runtime, undefined, { showAllowed: true });
  if (violations.length > 0) return violations;
  const { url, secretRef } = runtime as Endpoint;
  const message = faultOfUrl(url, networks);
  const values = await secretValues(organizationId, secretRef);
  return [
    ...(message === undefined ? [] : [{ path: '/url', message }]),
    ...faultsOfSecret(secretRef, values[0]).map((fault) => ({ path: '/secretRef', message: fault })),
  ];
}

function faultsOfSecret(name: string, value: string | undefined): string[] {
  if (value === undefined) return [noSuchSecret(name)];
  const fault = faultOfSigningSecret(value);
  return fault === undefined ? [] : [`the secret ${name} ${fault}`];
}

/** Calls the endpoint, and reads its answer. */
async function call(
  needs: HttpNeeds,
  request: RunRequest,
  usage: { calls: number },
  signal: AbortSignal,
): Promise<ReturnType<typeof answerOf>> {
  const { url, secretRef, retries = DEFAULT_RETRIES } = request.runtime as Endpoint;
  const { trace, limits, idempotencyKey: id, organizationId } = request;
  const secrets = await needs.secretValues(organizationId, secretRef);
  const keys = secrets.map(signingKeyOf).filter((key) => key !== undefined);
  if (keys.length === 0) throw new AgentFault('The secret of the agent is not set');
  signal.throwIfAborted();
  const callback = await request.tools?.issueCallbackToken();
  const body = bodyOf(request, callback);
  const ofSecrets = secrets.flatMap((secret) => [secret, secret.slice(KEY_PREFIX.length)]);
  const redact = makeRedact([...ofSecrets, ...(callback ? [callback.token] : [])]);
  const answer = await callEndpoint(needs.poster, {
    ...{ whose: 'agent', organizationId, url: new URL(url), body, retries, usage, signal },
    headers: () => signatureHeaders({ id, timestamp: Math.floor(needs.clock.now() / 1_000), body }, keys),
    maxBytes: limits.outputBytes + (trace ? TRACE_BYTES : ENVELOPE_BYTES),
    mayPass: (status) => [429, 502, 503, 504].includes(status),
  });
  const { outputBytes } = limits;
  return needs.schedule(organizationId, () => answerOf(answer, { outputBytes, trace, redact }));
}

const bodyOf = (
  { agent, agentVersion, agentExecutionId, organizationId, argsText }: RunRequest,
  callback: { token: string; expiresAt: string } | undefined,
): string => {
  const known = JSON.stringify({ agent, agentVersion, agentExecutionId, organizationId, callback });
  return `${known.slice(0, -1)},"args":${argsText}}`;
};
