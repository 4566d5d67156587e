import { organizationOfCall, type CallContext } from 'platform/rpc/call.ts';
import { invalid } from 'platform/core/errors.ts';
import { requireTime } from 'platform/core/clock.ts';
import { firstIdOf, isUuid } from 'platform/core/ids.ts';
import { requirePageSize } from 'platform/core/paging.ts';
import type { ListAgentExecutionsRequest, ListAgentExecutionsResponse } from 'proto/agents/v1/agents.ts';
import type { Deps } from '../deps.ts';
import { checkStatus } from './rules.ts';
import { executionMessage } from './message.ts';

const PAGE_SIZE = { default: 20, max: 100 };

/**
 * Executions, newest first. Following the cursor neither repeats nor skips one while new ones are recorded. Their ids
 * sort by the time at which they were recorded, so `since` and `until` are places in the list.
 * @throws ServiceError INVALID_REQUEST for a bad page size, status, time or cursor
 */
export async function listAgentExecutions(
  { executions }: Pick<Deps, 'executions'>,
  request: ListAgentExecutionsRequest,
  context: CallContext,
): Promise<ListAgentExecutionsResponse> {
  const pageSize = requirePageSize(request.pageSize, PAGE_SIZE);
  const filter = {
    ...(request.agent !== undefined && { agent: request.agent }),
    ...(request.status !== undefined && { status: checkStatus(request.status) }),
  };
  const first = request.since === undefined ? '' : firstIdOf(requireTime('/since', request.since));
  const starts = [
    ...(request.until === undefined ? [] : [firstIdOf(requireTime('/until', request.until))]),
    ...(request.cursor === undefined ? [] : [idOfCursor(request.cursor)]),
  ];
  const before = starts.sort()[0];
  const listed = await executions.list(organizationOfCall(context), filter, { before, limit: pageSize + 1 });
  const found = listed.filter(({ _id }) => _id >= first);
  const page = found.slice(0, pageSize);
  return {
    items: page.map(executionMessage),
    nextCursor: found.length > pageSize ? cursorOf(page.at(-1)?._id ?? '') : undefined,
  };
}

const cursorOf = (id: string): string => Buffer.from(id).toString('base64url');

function idOfCursor(cursor: string): string {
  const id = Buffer.from(cursor, 'base64url').toString();
  if (!isUuid(id) || cursorOf(id.toLowerCase()) !== cursor)
    throw invalid('/cursor', 'cursor is not a cursor of this list');
  return id;
}
