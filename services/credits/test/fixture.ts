import { CreditsServiceService } from 'proto/credits/v1/credits.ts';
import { HOUR_MS, type Clock } from 'platform/core/clock.ts';
import { newId } from 'platform/core/ids.ts';
import { operator, OPERATOR, serverToken, startProgram, type RunningProgram } from 'platform/service/testing.ts';
import { program } from '../src/service.ts';

/**
 * Starts the credits service for the tests of a `describe`: real gRPC, its own files. Jobs run only when a test runs
 * them.
 */
export function startCredits(clock?: Clock) {
  let running: RunningProgram;
  beforeAll(async () => {
    running = await startProgram(program, { RELAY_INTERVAL_MS: '3600000', SWEEP_INTERVAL_MS: '3600000' }, clock);
  });
  afterAll(() => running.stop());
  return {
    get running() {
      return running;
    },
    /** Calls as the agents service, on behalf of a server token of the organization. */
    agents: (organizationId: string) => {
      const client = running.client(CreditsServiceService, 'agents');
      const options = () => running.as(serverToken(organizationId, { name: 'pipeline' }));
      return {
        reserve: (id: string, amountMicros: number, { ttlMs = HOUR_MS, maxOpen = 0 } = {}) =>
          client.reserve({ id, amountMicros, ttlMs, maxOpen }, options()),
        extend: (id: string, ttlMs: number) => client.extend({ id, ttlMs }, options()),
        settle: (id: string, chargeMicros: number) => client.settle({ id, chargeMicros }, options()),
        release: (id: string) => client.release({ id }, options()),
        balance: async () => (await client.getBalance({}, options())).account,
        client,
        options,
      };
    },
    /** Calls as an operator. */
    operator: (organizationId: string) => {
      const client = running.client(CreditsServiceService, OPERATOR);
      const options = () => running.as(operator(organizationId));
      return {
        grant: (id: string, amountMicros: number, note = '') => client.grant({ id, amountMicros, note }, options()),
        rows: async (pageSize = 0, beforeSequence = 0) =>
          (await client.listLedgerRows({ pageSize, beforeSequence }, options())).rows,
        client,
        options,
      };
    },
    /** Id of a new organization with this amount granted. */
    async organizationWith(availableMicros: number): Promise<string> {
      const organizationId = newId();
      const operators = this.operator(organizationId);
      await operators.grant(newId(), availableMicros);
      return organizationId;
    },
  };
}
