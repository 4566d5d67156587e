import { CreditsServiceService } from 'proto/credits/v1/credits.ts';
import type { BoundHandlers } from 'platform/rpc/call.ts';
import { ServiceError } from 'platform/core/errors.ts';
import { openIdentity } from 'platform/rpc/identity.ts';
import { newId } from 'platform/core/ids.ts';
import { identityFilesOf, keyFolderOf } from 'platform/rpc/keys.ts';
import { makeLog } from 'platform/core/log.ts';
import { organizationOf } from 'platform/core/principal.ts';
import { startServer } from 'platform/rpc/server.ts';
import { pause } from '../../dev-servers/src/pause.ts';
import { startStack, type Stack } from '../support/stack.ts';
import type { Tenant } from '../support/tenant.ts';
import { commandLine, json, printed, sentence } from './admin-command.ts';

describe('the admin command line when the outcome of a request to credits is unknown', () => {
  let stack: Stack;
  let tenant: Tenant;
  beforeAll(async () => {
    stack = await startStack();
  });
  afterAll(() => stack.stop());
  beforeEach(async () => {
    tenant = await stack.tenant();
  });

  const on = (words: string, given?: Record<string, string>) =>
    commandLine(stack.env)(`--organization ${tenant.name} ${words}`, given);
  const granted = async (): Promise<number> => (await json(on('--json credits balance'))).grantedMicros / 1e6;
  /** The id with which the operator should repeat a grant, according to the output. */
  const idIn = (stderr: string): string =>
    /^Repeat the grant with --id (\S{36}): it is applied only once\n$/m.exec(stderr)?.[1] as string;

  /** Starts a credits process that executes each request and then fails with this error. */
  async function startFailingAfterwards(error: ServiceError) {
    const keys = keyFolderOf(stack.folder);
    const identity = openIdentity({ name: 'credits', ...identityFilesOf(keys, 'credits') });
    const handlers = {
      async grant(request, { principal }) {
        await stack.operator
          .client(CreditsServiceService, 'credits')
          .grant(request, stack.operator.as(organizationOf(principal)));
        throw error;
      },
    } satisfies Partial<BoundHandlers<typeof CreditsServiceService>>;
    return startServer({
      listen: '127.0.0.1:0',
      identity,
      log: makeLog('credits', 'silent'),
      services: [{ definition: CreditsServiceService, handlers }],
    });
  }

  it.each([
    ['OUTCOME_UNKNOWN', 'The outcome of the request is unknown'],
    ['UNAVAILABLE', 'A dependency of the service is not available'],
    ['INTERNAL', 'Unexpected server error'],
  ] as const)(
    'a grant that was done but answered %s counts once when it is repeated as the output says',
    async (reason, message) => {
      const { address, drain } = await startFailingAfterwards(new ServiceError(reason));
      const { code, stdout, stderr } = await on('credits grant 5', { CREDITS_ADDRESS: address });
      await drain(0);
      expect({ code, stdout, stderr }).toEqual({
        code: 1,
        stdout: '',
        stderr: `${message}\nRepeat the grant with --id ${idIn(stderr)}: it is applied only once\n`,
      });
      expect(await granted()).toBe(5);
      expect(await printed(on(`credits grant 5 --id ${idIn(stderr)}`))).toMatch(/^granted +5$/m);
      expect(await granted()).toBe(5);
    },
  );

  it('while credits is paused a grant names the id for its repeat, and a rebuild has an unknown outcome', async () => {
    const pids = stack.pidsOf('credits');
    await Promise.all(pids.map(pause));
    let stderr: string;
    try {
      const rebuilding = stack.operator
        .client(CreditsServiceService, 'credits')
        .rebuildLedger({}, { ...stack.operator.as(tenant.organizationId), deadline: Date.now() + 2_000 });
      await expect(rebuilding).rejects.toMatchObject({ reason: 'OUTCOME_UNKNOWN' });
      ({ stderr } = await on('credits grant 5'));
    } finally {
      for (const pid of pids) process.kill(pid, 'SIGCONT');
    }
    expect(stderr).toBe(
      `credits does not answer at ${stack.env.CREDITS_ADDRESS}: is it running?\nRepeat the grant with --id ${idIn(stderr)}: it is applied only once\n`,
    );
    for (const _again of [1, 2]) await printed(on(`credits grant 5 --id ${idIn(stderr)}`));
    expect(await granted()).toBe(5);
  });

  it('names no id for a repeat when the grant was rejected or never sent', async () => {
    const id = newId();
    await printed(on(`credits grant 5 --id ${id}`));
    expect(await sentence(on(`credits grant 6 --id ${id}`))).not.toContain('Repeat');
    expect(await sentence(on('credits grant 5', { AUTH_ADDRESS: '127.0.0.1:1' }))).toBe(
      'auth does not answer at 127.0.0.1:1: is it running?',
    );
  });
});
