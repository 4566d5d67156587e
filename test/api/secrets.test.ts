import { AgentsServiceService } from 'proto/agents/v1/agents.ts';
import { AuthServiceService } from 'proto/auth/v1/auth.ts';
import { DiagnosisServiceService } from 'proto/platform/v1/diagnosis.ts';
import { JobServiceService } from 'proto/platform/v1/jobs.ts';
import { keyFolderOf, masterKeyFileOf } from 'platform/rpc/keys.ts';
import { rotateMasterKey } from 'platform/rpc/master-keys.ts';
import { eventually } from 'platform/service/test-end.ts';
import { temporaryFolder } from 'platform/service/testing.ts';
import { NO_ENGINES } from '../support/shared-engines.ts';
import { request } from '../support/request.ts';
import { foundSecrets, keysIn, storedPlaces, type Place } from '../support/secret-search.ts';
import { startStack } from '../support/stack.ts';
import { expressionAgent } from '../support/tenant.ts';

it('no log, store or event holds a secret of a run: tokens, JWTs, the master keys, private keys, passwords', async () => {
  const folder = temporaryFolder();
  const password = 'pass-word-of-kafka-0123456789';
  const env = { ...NO_ENGINES, LOG_LEVEL: 'debug', KAFKA_PASSWORD: password };
  const stack = await startStack({ env, folder: folder.path });
  const tenant = await stack.tenant({ credits: 10, agents: [expressionAgent('total', '{"n": 1}')] });
  const auth = stack.operator.client(AuthServiceService, 'auth');
  const asOperator = stack.operator.as(tenant.organizationId);
  const { jwt } = await auth.issueJwt({ email: tenant.administrator }, asOperator);
  const { principal } = await auth.assumeUser({ email: tenant.administrator }, asOperator);
  const asAdministrator = stack.operator.asPrincipal(principal!);
  const rotated = await auth.rotateServerToken({ idOrName: 'tests', overlapSeconds: 3_600 }, asAdministrator);
  const secrets = [tenant.token, rotated.value, jwt, password];

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
  const signing = Buffer.alloc(32, 'signing').toString('base64');
  secrets.push(signing);
  await stack.operator
    .client(AgentsServiceService, 'agents')
    .setSecret({ name: 'signing', value: `whsec_${signing}`, overlapSeconds: 0 }, asOperator);
  const { operator } = stack;
  const [newest] = rotateMasterKey(masterKeyFileOf(keyFolderOf(folder.path)), 0);
  for (const name of ['auth', 'agents'] as const)
    await eventually(async () => {
      await operator.client(JobServiceService, name).runJob({ name: 'reseal' }, operator.as());
      const { findings } = await operator.client(DiagnosisServiceService, name).diagnose({}, operator.as());
      return findings.some(({ masterKey, fine }) => masterKey === newest!.id && fine);
    });
  await stack.stop();

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
  expect(foundSecrets(places, [...secrets, ...kept])).toEqual([]);
  // the first start shows the token of the demo organization once, and stores it nowhere either
  const shown = /shown this once: {2}(aks_\w+)/.exec(stack.output())?.[1] as string;
  expect(shown).toMatch(/^aks_/);
  expect(isIn(shown)).toEqual(['the output']);
  folder.remove();
});
