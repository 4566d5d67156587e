import { AuthServiceService } from 'proto/auth/v1/auth.ts';
import { asAdministrator } from '../../test/support/tenant-resources.ts';
import { openHttpConnection, type Address } from '../load/connection.ts';
import { percentile } from '../load/latencies.ts';
import { SCENARIOS, type Scenario } from '../load/scenarios.ts';
import { anyOf, requestOf, type Access } from '../load/requests.ts';
import { figure, noFindings, printTable, type Findings } from '../measure/report.ts';
import type { Settings } from '../settings.ts';
import { createToken, startProduct, type Product } from '../systems/product.ts';

const REVOKED = 20;
const PAUSE_MS = 250;
/** Requests with a revoked token after its revocation, before the next token. */
const ASKED = 64;

interface Token {
  value: string;
  isRevoking?: boolean;
  /** When the call that revoked it was answered. */
  revokedAt?: number;
  /** When the first 401 came. */
  refusedAt?: number;
  asked: number;
}

/** How soon a revoked token is refused while many connections send requests with it. */
export async function measureRevocation({ objects, connections }: Settings): Promise<Findings> {
  const product = await startProduct({ name: 'product', objects });
  const findings = noFindings();
  try {
    const tokens: Token[] = [];
    for (let n = 0; n <= REVOKED; n++)
      tokens.push({ value: await createToken(product.stack, product.tenant, `token ${n}`), asked: 0 });
    const { wrong, requests } = await revokeEach(product, tokens, connections, findings);
    const delays = tokens.slice(0, REVOKED).map(({ revokedAt, refusedAt }) => refusedAt! - revokedAt!);
    process.stdout.write('\n');
    printTable(
      [`${REVOKED} revocations at ${connections} connections`, 'p50 ms', 'max ms', 'requests', 'wrong answers'],
      [
        [
          'from the answer of the revocation to the first 401',
          figure(percentile(delays, 0.5)),
          figure(percentile(delays, 1)),
          figure(requests, 0),
          String(wrong),
        ],
      ],
    );
    if (wrong > 0) findings.failures.push(`${wrong} requests with a revoked token were accepted`);
    return findings;
  } finally {
    await product.stop();
  }
}

/** Half of the requests use the token that is revoked next, or was revoked last; the others use the last one. */
async function revokeEach(
  { stack, tenant, addresses, accessesOf }: Product,
  tokens: readonly Token[],
  connections: number,
  findings: Findings,
): Promise<{ wrong: number; requests: number }> {
  const [{ objects }] = accessesOf(SCENARIOS.get as Scenario) as readonly [Access];
  const kept = tokens.at(-1) as Token;
  let [current, isOver, wrong, requests] = [tokens[0] as Token, false, 0, 0];
  let askedEnough = (): void => undefined;

  async function loop(index: number): Promise<void> {
    const connection = openHttpConnection(addresses[index % addresses.length] as Address);
    while (!isOver) {
      const token = anyOf([current, kept]);
      const { text } = requestOf('get', { token: token.value, objects });
      const isRevoked = token.revokedAt !== undefined;
      const { status, body } = await connection.send(text);
      requests += 1;
      if (status === 401 && token.isRevoking) token.refusedAt ??= performance.now();
      else if (status !== 200) findings.failures.push(`get: ${status} ${body.slice(0, 200)}`);
      if (!isRevoked) continue;
      if (status === 200) wrong += 1;
      token.asked += 1;
      if (token.asked === ASKED) askedEnough();
    }
    connection.close();
  }

  const loops = Promise.all(Array.from({ length: connections }, (_, index) => loop(index)));
  const auth = stack.operator.client(AuthServiceService, 'auth');
  const as = await asAdministrator(stack, tenant);
  for (const [n, token] of tokens.slice(0, REVOKED).entries()) {
    current = token;
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    const enough = new Promise<void>((resolve) => (askedEnough = resolve));
    token.isRevoking = true;
    await auth.revokeServerToken({ idOrName: `token ${n}` }, as);
    token.revokedAt = performance.now();
    await Promise.race([enough, loops]);
  }
  isOver = true;
  await loops;
  return { wrong, requests };
}
