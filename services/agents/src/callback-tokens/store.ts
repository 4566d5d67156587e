import { CALLBACK_TOKEN, hashToken, makeToken } from 'platform/core/bearer-token.ts';
import { isoTime, type Clock } from 'platform/core/clock.ts';
import { newId } from 'platform/core/ids.ts';
import {
  collection,
  insert,
  update,
  type OrganizationDocument,
  type PlatformStore,
  type Store,
} from 'platform/store/store.ts';
import type { ExecutionRecord } from '../executions/store.ts';
import type { Limits } from '../definitions/rules.ts';
import { mayWrite, type Tools } from '../tools/rules.ts';

/** A token by which the endpoint of an http agent calls the API for one run. It is dead once the run has ended. */
export interface CallbackTokenRecord extends OrganizationDocument {
  /** SHA-256 of the value, in hex. */
  hash: string;
  executionId: string;
  agent: string;
  memoryTypes: string[];
  mayWrite: boolean;
  /** Requests that carried it so far, of at most `maxCalls`. */
  calls: number;
  maxCalls: number;
  /** ISO-8601, as createdAt. */
  expiresAt: string;
  createdAt: string;
}

export const CALLBACK_TOKENS = collection<CallbackTokenRecord>('callback_tokens', {
  scope: 'organization',
  columns: { hash: 'text', calls: 'number', createdAt: 'text' },
  platformIndexes: [{ fields: ['hash'] }],
});

export type CallbackTokens = ReturnType<typeof openCallbackTokens>;

export function openCallbackTokens(store: Store, platformStore: PlatformStore, clock: Clock) {
  return {
    /** Makes a token for a run, good for as long as the run may take. Only its hash is stored. */
    async issue(
      { _id, organizationId, agent }: ExecutionRecord,
      tools: Tools,
      { wallMs, maxToolCalls }: Limits,
    ): Promise<{ token: string; expiresAt: string }> {
      const token = makeToken(CALLBACK_TOKEN);
      const now = clock.now();
      const expiresAt = isoTime(now + wallMs);
      const record: CallbackTokenRecord = {
        ...{ _id: newId(now), organizationId, hash: hashToken(token), executionId: _id, agent },
        ...{ createdAt: isoTime(now), expiresAt },
        ...{ memoryTypes: tools.memory.types, mayWrite: mayWrite(tools), calls: 0, maxCalls: maxToolCalls },
      };
      await store.apply(organizationId, [insert(CALLBACK_TOKENS, record)]);
      return { token, expiresAt };
    },

    /** A token by its hash, across organizations, because its value does not name one. */
    byHash: (hash: string) => platformStore.findOne(CALLBACK_TOKENS, { hash }),

    /** Counts calls that were read as `calls`. @throws ExpectationFailedError when others were counted meanwhile */
    count: ({ _id, organizationId, calls }: CallbackTokenRecord, more: number): Promise<void> =>
      store.apply(organizationId, [update(CALLBACK_TOKENS, { _id, calls }, { increment: { calls: more } })]),
  };
}
