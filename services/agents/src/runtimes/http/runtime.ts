import { setTimeout as delay } from 'node:timers/promises';
import type { Clock } from 'platform/core/clock.ts';
import type { Violation } from 'platform/core/errors.ts';
import type { FairScheduler } from 'platform/core/fair-scheduler.ts';
import { compileSchema } from 'platform/json-schema/schema.ts';
import { makeRedact } from '../../secrets/redact.ts';
import { SECRET_NAME } from '../../secrets/rules.ts';
import type { RuntimeDefinition } from '../rules.ts';
import type { RunRequest, RunResult, Runtime } from '../runtime.ts';
import type { Turns } from '../turns.ts';
import { ForbiddenAddressError, hasForbiddenAddress } from './addresses.ts';
import { answerOf } from './answer.ts';
import { AnswerTooLargeError, type Posted, type Poster } from './post.ts';
import { KEY_PREFIX, signatureHeaders, signingKeyOf } from './signature.ts';

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
  /** The values of a secret that are valid now, the newest first; none when there is no such secret. */
  secretValues(organizationId: string, name: string): Promise<string[]>;
  schedule: FairScheduler;
  clock: Clock;
  /** Networks that may be called beside the public internet. */
  networks: readonly string[];
}

const DEFAULT_RETRIES = 2;
const schema = {
  description: "The customer's endpoint, called with the args by a signed POST (Standard Webhooks).",
  examples: [{ type: 'http', url: 'https://agents.example.com/invoices', secretRef: 'invoices-signing', retries: 2 }],
  type: 'object',
  required: ['type', 'url', 'secretRef'],
  additionalProperties: false,
  properties: {
    type: { const: 'http', description: 'The name of the runtime.' },
    url: { type: 'string', minLength: 1, maxLength: 2_048, description: 'The endpoint, by https.' },
    secretRef: { type: 'string', pattern: SECRET_NAME, description: 'The secret that signs the calls.' },
    retries: {
      ...{ type: 'integer', minimum: 0, maximum: 5, default: DEFAULT_RETRIES },
      description: 'How often a call is repeated after a failure that may pass.',
    },
  },
};
const compiled = compileSchema(JSON.stringify(schema));
const RETRIED = [429, 502, 503, 504];
const FIRST_PAUSE_MS = 200;
/** As long as the longest run. */
const LONGEST_PAUSE_MS = 300_000;
/** What an answer may have beside its output, without and with messages. */
const [ENVELOPE_BYTES, TRACE_BYTES] = [4_096, 65_536];

/** Agents that are endpoints of the customer, called by signed requests (Standard Webhooks 1.0). */
export function httpRuntime(needs: HttpNeeds): Runtime {
  const stopping = new AbortController();
  return {
    schema,
    units: ['calls'],
    check: (organizationId, runtime) => violationsOf(needs, organizationId, runtime),
    async run(request) {
      const endTurn = await needs.turns.take(
        request.organizationId,
        AbortSignal.any([request.signal, stopping.signal]),
      );
      if (!endTurn) return stopping.signal.aborted ? { outcome: 'interrupted' } : { outcome: 'cancelled', usage: {} };
      try {
        return await call(needs, request, stopping.signal);
      } finally {
        endTurn();
      }
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
  const secretFault =
    values[0] === undefined
      ? `there is no secret ${secretRef}; set it with: admin secret set ${secretRef}`
      : signingKeyOf(values[0]) === undefined && `the secret ${secretRef} must be whsec_ and 24 to 64 bytes in base64`;
  return [
    ...(message === undefined ? [] : [{ path: '/url', message }]),
    ...(secretFault === false ? [] : [{ path: '/secretRef', message: secretFault }]),
  ];
}

function faultOfUrl(text: string, networks: readonly string[]): string | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol !== 'https:' && url?.protocol !== 'http:') return 'must be an https:// URL';
  if (url.username !== '' || url.password !== '') return 'must hold no user name and no password';
  if (url.hash !== '') return 'must have no fragment';
  if (url.protocol === 'http:' && networks.length === 0) return 'must be an https:// URL';
  return hasForbiddenAddress(url, networks) ? 'must not be at an address of a private network' : undefined;
}

/** Calls the endpoint, again after a failure that may pass, until the time limit. */
async function call(needs: HttpNeeds, request: RunRequest, stopping: AbortSignal): Promise<RunResult> {
  const { url, secretRef, retries = DEFAULT_RETRIES } = request.runtime as Endpoint;
  const usage = { calls: 0 };
  const deadline = AbortSignal.timeout(request.limits.wallMs);
  const signal = AbortSignal.any([request.signal, deadline, stopping]);
  request.onStart();
  try {
    const secrets = await needs.secretValues(request.organizationId, secretRef);
    const keys = secrets.map(signingKeyOf).filter((key) => key !== undefined);
    if (keys.length === 0)
      return { outcome: 'failed', message: 'The secret of the agent is not set', messages: [], usage };
    const body = bodyOf(request);
    const redact = makeRedact(secrets.flatMap((secret) => [secret, secret.slice(KEY_PREFIX.length)]));
    for (let attempt = 0; ; attempt++) {
      usage.calls += 1;
      const timestamp = Math.floor(needs.clock.now() / 1_000);
      const headers = signatureHeaders({ id: request.idempotencyKey, timestamp, body }, keys);
      const maxBytes = request.limits.outputBytes + (request.trace ? TRACE_BYTES : ENVELOPE_BYTES);
      const posted = await needs.poster.post(new URL(url), { headers, body, maxBytes, signal }).catch(faultOf);
      if (typeof posted !== 'object') signal.throwIfAborted();
      const mayPass = posted === UNREACHABLE || (typeof posted === 'object' && RETRIED.includes(posted.status));
      if (mayPass && attempt < retries) {
        await delay(pauseMs(attempt, posted), undefined, { signal });
        continue;
      }
      if (typeof posted === 'string') return { outcome: 'failed', message: posted, messages: [], usage };
      const { outputBytes } = request.limits;
      const answer = await needs.schedule(request.organizationId, () =>
        answerOf(posted, { outputBytes, trace: request.trace, redact }),
      );
      return { ...answer, usage };
    }
  } catch (error) {
    if (stopping.aborted) return { outcome: 'interrupted' };
    if (request.signal.aborted) return { outcome: 'cancelled', usage };
    if (deadline.aborted) return { outcome: 'timed_out', usage };
    throw error;
  }
}

const bodyOf = ({ agent, agentVersion, agentExecutionId, organizationId, argsText }: RunRequest): string => {
  const known = JSON.stringify({ agent, agentVersion, agentExecutionId, organizationId });
  return `${known.slice(0, -1)},"args":${argsText}}`;
};

const UNREACHABLE = "The agent's endpoint could not be reached";

/** What the caller may read about a call without an answer. Certificates' faults have codes of OpenSSL (X509_V_ERR). */
function faultOf(error: Error & { code?: string }): string {
  if (error instanceof ForbiddenAddressError) return "The agent's endpoint is at an address that may not be called";
  if (error instanceof AnswerTooLargeError) return "The answer of the agent's endpoint is too large";
  if (/CERT|SELF_SIGNED|UNABLE_TO|ALTNAME|HOSTNAME/.test(error.code ?? ''))
    return "The certificate of the agent's endpoint could not be verified";
  return UNREACHABLE;
}

/** Longer each time, with a random part, or as long as the endpoint asks for. */
function pauseMs(attempt: number, posted: Posted | string): number {
  const asked = typeof posted === 'object' ? Number(posted.headers['retry-after'] ?? '') : 0;
  return asked > 0 ? Math.min(asked * 1_000, LONGEST_PAUSE_MS) : FIRST_PAUSE_MS * 2 ** attempt * (0.5 + Math.random());
}
