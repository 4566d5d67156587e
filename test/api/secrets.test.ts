import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { AuthServiceService } from 'proto/auth/v1/auth.ts';
import { temporaryFolder } from 'platform/service/testing.ts';
import { eventsOf } from '../support/event-records.ts';
import { NO_ENGINES } from '../support/shared-engines.ts';
import { request } from '../support/request.ts';
import { startStack } from '../support/stack.ts';
import { expressionAgent } from '../support/tenant.ts';

/** Every way in which text may be found again: as it is, and as the bytes that base64 stands for. */
function traces(secret: string): Buffer[] {
  const decoded = Buffer.from(secret, 'base64');
  return [Buffer.from(secret), ...(decoded.length >= 24 ? [decoded] : [])];
}

/** The files below the folder, but for those in which the keys are meant to be. */
const filesIn = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((file) => !/^keys(\/|$)/.test(file) && statSync(join(folder, file)).isFile())
    .map((file) => join(folder, file));

/** The private keys of the folder, each without the lines around it. */
const privateKeysIn = (folder: string): string[] =>
  readdirSync(folder).flatMap((file) =>
    [...readFileSync(join(folder, file), 'utf8').matchAll(/PRIVATE KEY-----\s([^-]+)-----END/g)].map(([, key]) =>
      key!.replace(/\s/g, ''),
    ),
  );

it('no log, store or event holds a secret of a run: tokens, JWTs, the master key, private keys, passwords', async () => {
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
  await stack.stop();

  const keys = join(folder.path, 'keys');
  const kept = [readFileSync(join(keys, 'master-key'), 'utf8').trim(), ...privateKeysIn(keys)];
  expect(kept.length).toBeGreaterThan(6);
  const events = Object.values((await eventsOf(stack, tenant)).events).flat();
  expect(events.length).toBeGreaterThan(8);
  const files = filesIn(folder.path);
  expect(files.map((file) => file.slice(folder.path.length + 1))).toEqual(
    expect.arrayContaining(['auth.db', 'agents.db', 'memory.db', 'credits.db', 'events.db']),
  );
  const places: [string, Buffer][] = [
    ...files.map((file): [string, Buffer] => [file, readFileSync(file)]),
    ['the output', Buffer.from(stack.output())],
    ['the events', Buffer.from(JSON.stringify(events))],
  ];
  // what is no secret is found, so the search works
  expect(places.filter(([, bytes]) => bytes.includes(tenant.name)).map(([place]) => place)).toContain(
    join(folder.path, 'auth.db'),
  );
  const found = [...secrets, ...kept].flatMap((secret) =>
    traces(secret).flatMap((trace) =>
      places.filter(([, bytes]) => bytes.includes(trace)).map(([place]) => `${secret.slice(0, 8)}… is in ${place}`),
    ),
  );
  expect(found).toEqual([]);
  // the first start shows the token of the demo organization once, and stores it nowhere either
  const shown = /shown this once: {2}(aks_\w+)/.exec(stack.output())?.[1] as string;
  expect(shown).toMatch(/^aks_/);
  expect(places.filter(([, bytes]) => bytes.includes(shown)).map(([place]) => place)).toEqual(['the output']);
  folder.remove();
});
