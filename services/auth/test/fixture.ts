import { fromStatus } from 'platform/rpc/wire-errors.ts';
import { AuthServiceService, type Attempt, type Decision } from 'proto/auth/v1/auth.ts';
import { ServiceError, type KnownReason } from 'platform/core/errors.ts';
import { newId } from 'platform/core/ids.ts';
import type { Principal } from 'platform/core/principal.ts';
import { eventually } from 'platform/service/test-end.ts';
import { OPERATOR, operator, principalWith, startProgram } from 'platform/service/testing.ts';
import { program } from '../src/service.ts';

export const LIST_TYPES = '/memory.v1.MemoryService/ListMemoryTypes';
export const RUN_AGENT = '/agents.v1.AgentsService/RunAgent';

/** A clock that only `advance` moves. It starts now, because the proof of identity that a caller sends expires. */
export const testClock = () => {
  let ms = Date.now();
  return {
    now: () => ms,
    advance: (byMs: number) => {
      ms += byMs;
    },
  };
};

export type AuthFixture = Awaited<ReturnType<typeof startAuth>>;

/** The real auth service on real gRPC and real SQLite files. Its slow jobs run when a test calls `runJob`. */
export async function startAuth(env: Record<string, string> = {}) {
  const clock = testClock();
  const running = await startProgram(
    program,
    { DENIALS_INTERVAL_MS: '60000', LAST_USED_FLUSH_MS: '10000', ...env },
    clock,
  );
  let auth = running.client(AuthServiceService, OPERATOR);
  let gateway = running.client(AuthServiceService, 'gateway');
  let names = 0;
  const service = principalWith({ kind: 'SERVICE', subject: 'gateway', name: 'gateway' });

  async function createOrganization(tier = 'enterprise'): Promise<string> {
    const { organization } = await auth.createOrganization(
      { name: `Organization ${++names}`, tier },
      running.as(operator()),
    );
    return organization!.id;
  }
  async function createUser(
    organizationId: string,
    roles: string[],
    email = `user${++names}@example.com`,
    groups: string[] = [],
  ) {
    const { user } = await auth.createUser(
      { email, name: 'A user', roles, groups },
      running.as(operator(organizationId)),
    );
    return user!;
  }
  /** The decisions of one call. */
  async function decideTogether(...attempts: Partial<Attempt>[]): Promise<Decision[]> {
    const request = {
      attempts: attempts.map((attempt) => ({ bearer: '', method: LIST_TYPES, requestId: newId(), ...attempt })),
    };
    return (await gateway.authenticate(request, running.as(service))).decisions;
  }
  async function assume(organizationId: string, email: string): Promise<Principal> {
    const { principal } = await auth.assumeUser({ email }, running.as(operator(organizationId)));
    return principal!;
  }

  return {
    running,
    clock,
    createOrganization,
    createUser,
    assume,
    get auth() {
      return auth;
    },
    /** The client of a gateway, and the options of its calls. */
    get gateway() {
      return gateway;
    },
    asGateway: () => running.as(service),
    as: running.as,
    asOperator: (organizationId = '') => running.as(operator(organizationId)),

    /** A new organization with a security administrator; `asAdmin()` gives the options of a call by that user. */
    async withSecurityAdmin(tier = 'enterprise') {
      const organizationId = await createOrganization(tier);
      const user = await createUser(organizationId, ['security_admin']);
      const principal = await assume(organizationId, user.email);
      return { organizationId, user, principal, asAdmin: () => running.as(principal) };
    },

    decideTogether,

    /** Asks again alone, as the gateway does, where auth wants that. */
    async authenticate(...attempts: Partial<Attempt>[]): Promise<Decision[]> {
      const decisions = await decideTogether(...attempts);
      for (const [index, { askAlone }] of decisions.entries())
        if (askAlone) decisions[index] = (await decideTogether(attempts[index]!))[0]!;
      return decisions;
    },

    /** Flushes denials and outbox, and resolves to the audit trail, newest first, once `enough` accepts its actions. */
    async auditTrail(organizationId: string, enough: (actions: string[]) => boolean = () => true) {
      await running.runJob('denials');
      await running.runJob('relay');
      return until(
        async () =>
          (await auth.listAuditEntries({ pageSize: 0, beforeId: '', action: '' }, running.as(operator(organizationId))))
            .entries,
        (entries) => enough(entries.map(({ action }) => action)),
      );
    },

    async restart() {
      await running.restart();
      auth = running.client(AuthServiceService, OPERATOR);
      gateway = running.client(AuthServiceService, 'gateway');
    },
    stop: () => running.stop(),
  };
}

/** Reads until `wanted` accepts the value. */
export async function until<T>(read: () => Promise<T>, wanted: (value: T) => boolean): Promise<T> {
  const { value } = await eventually(async () => {
    const current = await read();
    return wanted(current) && { value: current };
  });
  return value;
}

/** Expects the call to fail for this reason, and resolves to its error. */
export async function expectError(call: Promise<unknown>, reason: KnownReason): Promise<ServiceError> {
  const error = await call.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(ServiceError);
  expect((error as ServiceError).reason).toBe(reason);
  return error as ServiceError;
}

/** Why auth denied an attempt; undefined: it did not. */
export const denialOf = ({ denial }: Decision): KnownReason | undefined => denial && fromStatus(denial)?.reason;
