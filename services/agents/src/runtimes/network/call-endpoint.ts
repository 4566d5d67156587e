import { setTimeout as delay } from 'node:timers/promises';
import { ForbiddenAddressError, hasForbiddenAddress } from './addresses.ts';
import { AgentFault } from './network-run.ts';
import { RefusedAnswerError, type Posted, type Poster } from './post.ts';

export const DEFAULT_RETRIES = 2;
/** The member `retries` of a definition's runtime. */
export const retriesSchema = {
  ...{ type: 'integer', minimum: 0, maximum: 5, default: DEFAULT_RETRIES },
  description: 'How often a call is repeated after a failure that may pass.',
};
const FIRST_PAUSE_MS = 200;
/** As long as the longest run. */
const LONGEST_PAUSE_MS = 300_000;

interface EndpointCall {
  /** Whose endpoint it is, for messages: `agent` or `model`. */
  whose: string;
  organizationId: string;
  url: URL;
  /** Made for each call. */
  headers(): Record<string, string>;
  body: string;
  maxBytes: number;
  retries: number;
  /** Whether an answer with this status is a failure that may pass. */
  mayPass(status: number): boolean;
  /** Each call is counted here. */
  usage: { calls: number };
  signal: AbortSignal;
}

/**
 * Posts, and again after a failure that may pass, after longer pauses each time or after what `Retry-After` says.
 * @param pause given in tests
 * @returns the last answer, whatever its status
 * @throws AgentFault without an answer; the reason of `signal`
 */
export async function callEndpoint(
  poster: Pick<Poster, 'post'>,
  call: EndpointCall,
  pause: (ms: number, value: undefined, options: { signal: AbortSignal }) => Promise<unknown> = delay,
): Promise<Posted> {
  const { whose, organizationId, url, body, maxBytes, retries, mayPass, usage, signal } = call;
  for (let attempt = 0; ; attempt++) {
    usage.calls += 1;
    const given = { organizationId, headers: call.headers(), body, maxBytes, signal };
    const posted = await poster.post(url, given).catch((error: Error) => {
      signal.throwIfAborted();
      return faultOf(error, whose);
    });
    const isPassing = posted instanceof AgentFault ? posted.message === unreachable(whose) : mayPass(posted.status);
    if (isPassing && attempt < retries) {
      await pause(pauseMs(attempt, posted), undefined, { signal });
      continue;
    }
    if (posted instanceof AgentFault) throw posted;
    return posted;
  }
}

const LISTED_BY = 'AGENT_NETWORKS of the agents service';

/** Why a definition may not name this URL; undefined: it may. No name is resolved for it. */
export function faultOfUrl(text: string, networks: readonly string[]): string | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol !== 'https:' && url?.protocol !== 'http:') return 'must be an https:// URL';
  if (url.username !== '' || url.password !== '') return 'must hold no user name and no password';
  if (url.hash !== '') return 'must have no fragment';
  const isForbidden = hasForbiddenAddress(url, networks);
  if (url.protocol === 'http:' && (isForbidden || networks.length === 0))
    return `must be an https:// URL, or in one of the networks that ${LISTED_BY} lists`;
  return isForbidden ? `must not be in a private network, unless ${LISTED_BY} lists it` : undefined;
}

const unreachable = (whose: string): string => `The ${whose}'s endpoint could not be reached`;

/** What the caller may read about a call without an answer. Certificates' faults have codes of OpenSSL (X509_V_ERR). */
function faultOf(error: Error & { code?: string }, whose: string): AgentFault {
  if (error instanceof ForbiddenAddressError)
    return new AgentFault(`The ${whose}'s endpoint is at an address that may not be called`);
  if (error instanceof RefusedAnswerError)
    return new AgentFault(`The answer of the ${whose}'s endpoint ${error.message}`);
  if (/CERT|SELF_SIGNED|UNABLE_TO|ALTNAME|HOSTNAME/.test(error.code ?? ''))
    return new AgentFault(`The certificate of the ${whose}'s endpoint could not be verified`);
  return new AgentFault(unreachable(whose));
}

/** Longer each time, with a random part, or as long as the endpoint asks for. */
function pauseMs(attempt: number, posted: Posted | AgentFault): number {
  const asked = posted instanceof AgentFault ? 0 : Number(posted.headers['retry-after'] ?? '');
  return asked > 0 ? Math.min(asked * 1_000, LONGEST_PAUSE_MS) : FIRST_PAUSE_MS * 2 ** attempt * (0.5 + Math.random());
}
