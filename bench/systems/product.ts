import { AuthServiceService } from 'proto/auth/v1/auth.ts';
import { cursorOf } from '../../services/memory/src/objects/cursor.ts';
import { exitOf } from '../../test/support/run-process.ts';
import { launch, startStack, type Stack } from '../../test/support/stack.ts';
import { expressionAgent, type Tenant } from '../../test/support/tenant.ts';
import { asAdministrator } from '../../test/support/tenant-resources.ts';
import type { Access, BenchObject } from '../load/requests.ts';
import { TOKENS_EACH, type Scenario } from '../load/scenarios.ts';
import { untilDrained } from '../measure/drain.ts';
import { cpuOf, descendantsCpuOf, treePssOf } from '../measure/processes.ts';
import { createObjects } from './fill.ts';
import { openRecords } from './records.ts';
import { addressOf, type System } from './system.ts';

const PROCESS_NAMES = ['gateway', 'auth', 'agents', 'memory', 'credits'] as const;
/** One organization makes all requests, more at once than it may by default. */
const SETTINGS = { RUNS_AT_ONCE: '1000', RUN_QUEUE_LIMIT: '1000' };

export interface Product extends System {
  stack: Stack;
  /** The organization of the scenarios that have one. */
  tenant: Tenant;
  /** Memory of all processes before the first request, in MB. */
  pssAtStartMb: number;
}

export interface ProductOptions {
  name: string;
  objects: number;
  /** Organizations for the scenarios of several; they share as many objects. */
  organizations?: number;
  env?: Record<string, string>;
  /** 1: start no second replica, even on real servers. */
  replicas?: 1;
  /** Process ids of the servers that it uses. */
  servers?: Readonly<Record<string, number>>;
}

/** Starts the product as `npm start` does, on a folder of its own, and creates its objects. */
export async function startProduct(options: ProductOptions): Promise<Product> {
  const { name, objects, organizations = 0, env, replicas, servers = {} } = options;
  // as npm ci does, for sources that have changed since: a process that strips their types takes 12 MB more
  await exitOf(launch({}, ['--help']).launcher);
  const stack = await startStack({ env: { ...SETTINGS, ...env }, ...(replicas && { replicas }) });
  try {
    const pssMb = (): number => stack.launchers.reduce((sum, { pid }) => sum + treePssOf(pid as number), 0);
    const pssAtStartMb = pssMb();
    process.stderr.write(`filling ${name}\n`);
    const tenant = await stack.tenant({ credits: 1_000_000, agents: [expressionAgent('echo', '{ "echo": $ }')] });
    const own = await accessOf(stack, tenant, objects);
    const jwts = await accessesWithJwts(stack, tenant, own.objects);
    const several: Access[] = [];
    for (let n = 0; n < organizations; n++)
      several.push(...(await organizationWithTokens(stack, Math.ceil(objects / organizations))));
    const records = openRecords(stack);
    await untilDrained(records);
    return {
      name,
      stack,
      tenant,
      addresses: stack.baseUrls.map(addressOf),
      accessesOf: (scenario: Scenario) => (scenario.jwts ? jwts : scenario.organizations === 1 ? [own] : several),
      runsAgents: true,
      pids: Object.fromEntries(PROCESS_NAMES.map((process) => [process, stack.pidsOf(process)])),
      cpu: cpuMeter(stack, servers),
      pssMb,
      pssAtStartMb,
      records,
      async stop() {
        await records.close();
        await stack.stop();
      },
    };
  } catch (error) {
    await stack.stop();
    throw error;
  }
}

/** Runners are the descendants of the agents service. They come and go, and each costs what it has used. */
function cpuMeter(stack: Stack, servers: Readonly<Record<string, number>>): () => Record<string, number> {
  const pids = PROCESS_NAMES.map((name) => [name, stack.pidsOf(name)] as const);
  const sum = (of: readonly number[], micros: (pid: number) => number): number =>
    of.reduce((total, pid) => total + micros(pid), 0);
  return () => ({
    ...Object.fromEntries(pids.map(([name, of]) => [name, sum(of, cpuOf)])),
    runners: sum(stack.pidsOf('agents'), descendantsCpuOf),
    launcher: sum(
      stack.launchers.map(({ pid }) => pid as number),
      cpuOf,
    ),
    ...Object.fromEntries(Object.entries(servers).map(([name, pid]) => [name, cpuOf(pid) + descendantsCpuOf(pid)])),
  });
}

async function accessOf(stack: Stack, tenant: Tenant, objects: number): Promise<Access> {
  const { status, text } = await tenant.request('POST', '/api/memory/types', {
    type: 'item',
    jsonSchema: { type: 'object', properties: { name: { type: 'string' } } },
  });
  if (status !== 201) throw new Error(`creating the type answered ${status} ${text}`);
  return {
    token: tenant.token,
    objects: await createObjects(stack.baseUrls.map(addressOf), tenant.token, objects),
    cursorAfter: ({ id }) => cursorOf({ type: 'item' }, tenant.organizationId, id, 'older'),
  };
}

async function organizationWithTokens(stack: Stack, objects: number): Promise<Access[]> {
  const tenant = await stack.tenant();
  const access = await accessOf(stack, tenant, objects);
  const tokens = [tenant.token];
  for (let n = 1; n < TOKENS_EACH; n++) tokens.push(await createToken(stack, tenant, `token ${n}`));
  return tokens.map((token) => ({ ...access, token }));
}

async function accessesWithJwts(stack: Stack, tenant: Tenant, objects: readonly BenchObject[]): Promise<Access[]> {
  const auth = stack.operator.client(AuthServiceService, 'auth');
  const issue = () => auth.issueJwt({ email: tenant.administrator }, stack.operator.as(tenant.organizationId));
  const issued = await Promise.all(Array.from({ length: TOKENS_EACH }, issue));
  return issued.map(({ jwt }) => ({ token: jwt, objects }));
}

/** @returns the value of a new server token */
export async function createToken(stack: Stack, tenant: Tenant, name: string): Promise<string> {
  const auth = stack.operator.client(AuthServiceService, 'auth');
  return (await auth.createServerToken({ name, expiresAt: undefined }, await asAdministrator(stack, tenant))).value;
}
