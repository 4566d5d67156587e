import { organizationOfCall, type CallContext } from 'platform/rpc/call.ts';
import { invalid } from 'platform/core/errors.ts';
import { isUuid } from 'platform/core/ids.ts';
import type { ListAgentExecutionsRequest, ListAgentExecutionsResponse } from 'proto/agents/v1/agents.ts';
import type { Deps } from '../deps.ts';
import { checkPageSize, checkStatus } from './rules.ts';
import { summaryOf } from './message.ts';

/** Newest first. Following the cursor neither repeats nor skips a run while others are recorded. */
export async function listAgentExecutions(
  { executions }: Pick<Deps, 'executions'>,
  request: ListAgentExecutionsRequest,
  context: CallContext,
): Promise<ListAgentExecutionsResponse> {
  const pageSize = checkPageSize(request.pageSize);
  const filter = {
    ...(request.agent !== undefined && { agent: request.agent }),
    ...(request.status !== undefined && { status: checkStatus(request.status) }),
  };
  const before = request.cursor === undefined ? undefined : idOfCursor(request.cursor);
  const found = await executions.list(organizationOfCall(context), filter, { before, limit: pageSize + 1 });
  const page = found.slice(0, pageSize);
  return {
    items: page.map(summaryOf),
    nextCursor: found.length > pageSize ? cursorOf(page.at(-1)?._id ?? '') : undefined,
  };
}

const cursorOf = (id: string): string => Buffer.from(id).toString('base64url');

function idOfCursor(cursor: string): string {
  const id = Buffer.from(cursor, 'base64url').toString();
  if (!isUuid(id) || cursorOf(id) !== cursor) throw invalid('/cursor', 'is not a cursor of this list');
  return id;
}
