import { HANGING } from '../../services/agents/test/runtimes/expression/hanging.ts';
import { request } from '../../test/support/request.ts';
import { startStack } from '../../test/support/stack.ts';
import { expressionAgent, type Tenant } from '../../test/support/tenant.ts';

const FLOODERS = 8;
/** Requests that each of them keeps open: as many runs as an organization may have at once. */
const OPEN = 20;
const SAMPLES = 60;
const LONGEST_MS = 40_000;
const PAUSE_MS = 250;

/**
 * Prints how long a quick run of one organization takes: alone, and while eight others keep every runner busy; with
 * further runners, and without.
 */
export async function measureNeighbours(): Promise<void> {
  process.stdout.write('| | runs | p50 ms | p90 ms | p99 ms | max ms | failed |\n|---|--:|--:|--:|--:|--:|--:|\n');
  for (const [name, env, flooders] of [
    ['alone', {}, 0],
    [`${FLOODERS} others flood`, {}, FLOODERS],
    [`${FLOODERS} others flood, RUNNERS_MAX=2`, { RUNNERS_MAX: '2' }, FLOODERS],
  ] as const)
    process.stdout.write(`| ${name} | ${await measure(env, flooders)} |\n`);
}

async function measure(env: Record<string, string>, flooders: number): Promise<string> {
  const stack = await startStack({ env, replicas: 1 });
  const stopped = new AbortController();
  try {
    const quick = await stack.tenant({ credits: 1_000, agents: [expressionAgent('quick', '1 + 1')] });
    const hanging = expressionAgent('hanging', HANGING, { limits: { wallMs: 4_000 } });
    const others: Tenant[] = [];
    for (let n = 0; n < flooders; n++) others.push(await stack.tenant({ credits: 100_000, agents: [hanging] }));
    const floods = others.flatMap((other) =>
      Array.from({ length: OPEN }, () => flood(stack.baseUrl, other, stopped.signal)),
    );
    await new Promise((resolve) => setTimeout(resolve, flooders > 0 ? 6_000 : 0));

    const times: number[] = [];
    let failed = 0;
    const until = performance.now() + LONGEST_MS;
    while (times.length < SAMPLES && performance.now() < until) {
      const since = performance.now();
      const { status } = await quick.requestOnce('POST', '/api/agent/run', { agentName: 'quick', args: {} });
      times.push(performance.now() - since);
      if (status !== 200) failed += 1;
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    }
    stopped.abort();
    await Promise.all(floods);
    times.sort((a, b) => a - b);
    const at = (share: number): number => Math.round(times[Math.ceil(share * times.length) - 1] as number);
    return [times.length, at(0.5), at(0.9), at(0.99), at(1), failed].join(' | ');
  } finally {
    await stack.stop();
  }
}

/** Sends the next run as soon as the one before is answered. */
async function flood(baseUrl: string, { token }: Tenant, signal: AbortSignal): Promise<void> {
  const body = { agentName: 'hanging', args: {} };
  while (!signal.aborted)
    await request(baseUrl, 'POST', '/api/agent/run', { token, body, signal }).catch(() => undefined);
}
