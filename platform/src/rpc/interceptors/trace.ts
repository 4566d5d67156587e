import { principalIds } from '../../core/principal.ts';
import { inSpan, isTracing, scopeOfRequest, type Attributes } from '../../telemetry/traces.ts';
import type { Interceptor } from '../handle.ts';

/** Does the rest of the call in the trace of its caller, and in a span if that is sampled. */
export const traceCalls: Interceptor = (call, next) => {
  if (!isTracing()) return next();
  const { path, requestId, principal } = call;
  return inSpan(
    'server',
    path.slice(1),
    () => ({ ...rpcAttributes(path), ...requestAttributes(requestId, principal) }),
    next,
    scopeOfRequest(call.traceparent, requestId),
  );
};

/** @param path "/memory.v1.MemoryService/ListMemoryTypes" */
export const rpcAttributes = (path: string): Attributes => ({
  'rpc.system.name': 'grpc',
  'rpc.method': path.slice(1),
});

/** Ours: OpenTelemetry has no names for them. */
export function requestAttributes(requestId: string, principal: Parameters<typeof principalIds>[0]): Attributes {
  const { organizationId, tokenId, agentExecutionId } = principalIds(principal);
  return {
    'agentmemory.request.id': requestId,
    'agentmemory.organization.id': organizationId,
    'agentmemory.token.id': tokenId,
    'agentmemory.agent_execution.id': agentExecutionId,
  };
}
