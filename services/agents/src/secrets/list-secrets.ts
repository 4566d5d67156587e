import { isoTime } from 'platform/core/clock.ts';
import { organizationOfCall, type CallContext } from 'platform/rpc/call.ts';
import type { ListSecretsRequest, ListSecretsResponse } from 'proto/agents/v1/agents.ts';
import type { Deps } from '../deps.ts';
import { secretMessage } from './message.ts';

/** The secrets of the organization without their values, sorted by name. */
export async function listSecrets(
  { secrets, clock }: Pick<Deps, 'secrets' | 'clock'>,
  _request: ListSecretsRequest,
  context: CallContext,
): Promise<ListSecretsResponse> {
  const now = isoTime(clock.now());
  return { secrets: (await secrets.list(organizationOfCall(context))).map((secret) => secretMessage(secret, now)) };
}
