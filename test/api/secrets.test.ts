import { AgentsServiceService } from 'proto/agents/v1/agents.ts';
import { AuthServiceService } from 'proto/auth/v1/auth.ts';
import { DiagnosisServiceService } from 'proto/platform/v1/diagnosis.ts';
import { JobServiceService } from 'proto/platform/v1/jobs.ts';
import { keyFolderOf, masterKeyFileOf } from 'platform/rpc/keys.ts';
import { rotateMasterKey } from 'platform/rpc/master-keys.ts';
import { eventually } from 'platform/service/test-end.ts';
import { temporaryFolder } from 'platform/service/testing.ts';
import { say } from '../../services/agents/test/runtimes/llm/model-server.ts';
import { answerWith, startEndpoint } from '../../services/agents/test/runtimes/network/endpoint.ts';
import { NO_ENGINES } from '../support/shared-engines.ts';
import { request } from '../support/request.ts';
import { foundSecrets, keysIn, storedPlaces, WINDOW, type Place } from '../support/secret-search.ts';
import { startStack, type Stack } from '../support/stack.ts';
import { expressionAgent, type Tenant } from '../support/tenant.ts';

const SIGNING = Buffer.alloc(32, '\xffsigning', 'latin1').toString('base64');
const API_KEY = 'sk-the/key+of~a"model';
const formsOf = (secret: string): string[] => [
  secret,
  encodeURIComponent(secret),
  Buffer.from(secret).toString('base64'),
  Buffer.from(secret).toString('base64url'),
  Buffer.from(secret).toString('hex'),
  JSON.stringify(secret).slice(1, -1),
];

/** The endpoint of an http agent and of a model, which tell in every form what they were called with. */
const startTelltale = () =>
  startEndpoint(({ path, headers }, response) => {
    if (path !== '/http') return say(response, formsOf(String(headers.authorization).slice('Bearer '.length)).join());
    const texts = formsOf(SIGNING);
    answerWith(response, { error: texts.join(), messages: texts });
  });

/** Runs an http agent and an llm agent at such an endpoint. @returns every form of their secrets */
async function runTelltales(stack: Stack, tenant: Tenant, url: string): Promise<string[]> {
  const agents = stack.operator.client(AgentsServiceService, 'agents');
  const as = () => stack.operator.as(tenant.organizationId);
  await agents.setSecret({ name: 'signing', value: `whsec_${SIGNING}`, overlapSeconds: 0 }, as());
  await agents.setSecret({ name: 'api-key', value: API_KEY, overlapSeconds: 0 }, as());
  const runtimes = {
    http: { url: `${url}/http`, secretRef: 'signing' },
    // Its answers are not JSON, so that the run fails and they are in its messages alone.
    llm: { url, model: 'tested', prompt: 'Tell.', secretRef: 'api-key' },
  };
  for (const [type, runtime] of Object.entries(runtimes)) {
    const definition = JSON.stringify({
      ...expressionAgent(type, ''),
      ...{ runtime: { type, ...runtime }, outputSchema: { type: 'object' }, trace: true },
    });
    await agents.applyAgent({ definition }, as());
    await agents.publishAgent({ name: type, version: undefined }, as());
    const reply = await tenant.request('POST', '/api/agent/run', { agentName: type, args: {} });
    expect([reply.status, reply.body.code]).toEqual([500, 'agent_failed']);
    const record = await tenant.request('GET', `/api/agent/executions/${reply.body.agentExecutionId}`);
    expect(record.text).toContain('[redacted]');
    for (const form of [...formsOf(SIGNING), ...formsOf(API_KEY)])
      for (const { text } of [reply, record]) expect(text).not.toContain(form);
  }
  return [...formsOf(SIGNING), ...formsOf(API_KEY)];
}

it('no log, store or event holds a secret of a run: tokens, JWTs, the master keys, private keys, passwords', async () => {
  const folder = temporaryFolder();
  const password = 'pass-word-of-kafka-0123456789';
  const env = { ...NO_ENGINES, LOG_LEVEL: 'debug', KAFKA_PASSWORD: password, AGENT_NETWORKS: '127.0.0.1/32' };
  const stack = await startStack({ env, folder: folder.path });
  const endpoint = await startTelltale();
  const tenant = await stack.tenant({ credits: 10, agents: [expressionAgent('total', '{"n": 1}')] });
  const auth = stack.operator.client(AuthServiceService, 'auth');
  const asOperator = stack.operator.as(tenant.organizationId);
  const { jwt } = await auth.issueJwt({ email: tenant.administrator }, asOperator);
  const { principal } = await auth.assumeUser({ email: tenant.administrator }, asOperator);
  const asAdministrator = stack.operator.asPrincipal(principal!);
  const rotated = await auth.rotateServerToken({ idOrName: 'tests', overlapSeconds: 3_600 }, asAdministrator);
  const secrets = [tenant.token, rotated.value, jwt, password];
  secrets.push(...(await runTelltales(stack, tenant, endpoint.url)));
  expect(endpoint.requests).toHaveLength(3);

  const send = (token: string | undefined, method: string, path: string, body?: unknown, headers?: object) =>
    request(stack.baseUrl, method, path, { token, body, headers } as never);
  for (const token of [tenant.token, rotated.value, jwt]) {
    const run = { agentName: 'total', args: {} };
    expect((await send(token, 'POST', '/api/agent/run', run)).status).toBe(200);
    expect((await send(token, 'GET', '/api/auth/whoami')).status).toBe(200);
    const type = { type: `kind-${secrets.indexOf(token)}`, jsonSchema: { type: 'object' } };
    expect((await send(token, 'POST', '/api/memory/types', type)).status).toBe(201);
    // what clients do by mistake: the secret in the address, in another header, with something behind it
    await send(undefined, 'GET', `/api/memory/types?token=${token}`);
    await send(token, 'GET', `/api/memory/types/${token}`);
    await send(undefined, 'GET', `/api/${token}`);
    await send(undefined, 'GET', '/api/memory/types', undefined, { 'X-Api-Key': token, 'X-Request-Id': token });
    await send(`${token}x`, 'GET', '/api/memory/types');
  }
  const { serverTokens } = await auth.listServerTokens(
    { pageSize: 10, afterId: '', unusedForSeconds: 0 },
    asAdministrator,
  );
  await auth.revokeServerToken({ idOrName: serverTokens[0]!.id }, asAdministrator);
  for (const token of [tenant.token, rotated.value]) await send(token, 'GET', '/api/auth/whoami');
  const { operator } = stack;
  const [newest] = rotateMasterKey(masterKeyFileOf(keyFolderOf(folder.path)), 0);
  for (const name of ['auth', 'agents'] as const)
    await eventually(async () => {
      await operator.client(JobServiceService, name).runJob({ name: 'reseal' }, operator.as());
      const { findings } = await operator.client(DiagnosisServiceService, name).diagnose({}, operator.as());
      return findings.some(({ masterKey, fine }) => masterKey === newest!.id && fine);
    });
  await stack.stop();
  await endpoint.close();

  const kept = keysIn(folder.path);
  expect(kept.length).toBeGreaterThan(6);
  const places: Place[] = [...(await storedPlaces(folder.path, env)), ['the output', Buffer.from(stack.output())]];
  const names = places.map(([place]) => place.slice(place.lastIndexOf('/') + 1));
  expect(names).toEqual(
    expect.arrayContaining(['auth.db', 'agents.db', 'memory.db', 'credits.db', 'events.db', 'the output']),
  );
  // what is no secret is found, so the search works
  const isIn = (text: string): string[] =>
    places.filter(([, bytes]) => bytes.includes(text)).map(([place]) => place.replace(folder.path, ''));
  expect(isIn(tenant.name)).toContain('/auth.db');
  expect(isIn(tenant.organizationId)).toContain('the events in /events.db');
  expect(foundSecrets([['a place', Buffer.from(`before ${tenant.token} behind`)]], [])).toHaveLength(1);
  const long = Buffer.alloc(WINDOW + 1_000, ' ');
  long.write(tenant.token, WINDOW - 20);
  expect(foundSecrets([['a place of two windows', long]], [])).toHaveLength(1);
  expect(foundSecrets(places, [...secrets, ...kept])).toEqual([]);
  // the first start shows the token of the demo organization once, and stores it nowhere either
  const shown = /shown this once: {2}(aks_\w+)/.exec(stack.output())?.[1] as string;
  expect(shown).toMatch(/^aks_/);
  expect(isIn(shown)).toEqual(['the output']);
  folder.remove();
});
