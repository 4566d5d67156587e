import type { MethodDefinition } from '@grpc/proto-loader';
import { ServiceError } from '../core/errors.ts';
import type { Principal, PrincipalKind } from '../core/principal.ts';
import { packageDefinition } from './protos.ts';

/** platform.v1.MethodPolicy of one method, as proto/platform/v1/options.proto explains it. */
export interface MethodPolicy {
  principals: readonly PrincipalKind[];
  callers: readonly string[];
  role: string;
  capability: string;
  public: boolean;
  deadlineMs: number;
  repeatable: boolean;
  /** camelCase name of the request field; empty: none. */
  outlivesClientWith: string;
  ignoredMembers: readonly string[];
  /** 0: the gateway's limit. */
  maxBodyBytes: number;
}

/** Longer than two steps on an engine, each with its time-out: the service itself says whether it was done. */
const DEFAULT_DEADLINE_MS = 12_000;

type RawPolicy = Record<string, unknown> | undefined;
// protobufjs yields a bare value for one element, an array for several, depending on how it was written
const list = (value: unknown): string[] =>
  value === undefined ? [] : Array.isArray(value) ? value.map(String) : [String(value)];
/** "path_id" -> "pathId", as the codecs name fields. */
export const camelCase = (name: string): string =>
  name.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());

function policyOf(raw: RawPolicy = {}): MethodPolicy {
  return {
    principals: list(raw.principals) as PrincipalKind[],
    callers: list(raw.callers),
    role: String(raw.role ?? ''),
    capability: String(raw.capability ?? ''),
    public: raw.public === true,
    deadlineMs: Number(raw.deadline_ms ?? DEFAULT_DEADLINE_MS),
    repeatable: raw.repeatable === true,
    outlivesClientWith: camelCase(String(raw.outlives_client_with ?? '')),
    ignoredMembers: list(raw.ignored_members),
    maxBodyBytes: Number(raw.max_body_bytes ?? 0),
  };
}

let policies: ReadonlyMap<string, MethodPolicy> | undefined;

/** Full method path ("/memory.v1.MemoryService/ListMemoryTypes") -> its policy, for every method of the contract. */
export function methodPolicies(): ReadonlyMap<string, MethodPolicy> {
  policies ??= new Map(
    Object.values(packageDefinition())
      .filter((definition) => !('format' in definition))
      .flatMap((service) => Object.values(service as Record<string, MethodDefinition<object, object>>))
      .map((method) => [
        method.path,
        policyOf((method.options as Record<string, unknown>)['(platform.v1.method)'] as RawPolicy),
      ]),
  );
  return policies;
}

export function policyFor(methodPath: string): MethodPolicy {
  const policy = methodPolicies().get(methodPath);
  if (!policy) throw new Error(`${methodPath} is not in the contract`);
  return policy;
}

/** "operator:ada" -> "operator": how a policy's `callers` names a process. */
export const callerRole = (caller: string): string => caller.split(':', 1)[0] as string;

/**
 * What every service checks again, since it never trusts its caller: process, principal kind, role.
 * The licence tier is auth's to check.
 * @throws ServiceError FORBIDDEN, ADMIN_REQUIRED
 */
export function requireAccess(policy: MethodPolicy, caller: string, principal: Principal): void {
  if (!policy.callers.includes(callerRole(caller)))
    throw new ServiceError('FORBIDDEN', 'This process may not call this method');
  if (!policy.principals.includes(principal.kind)) throw new ServiceError('FORBIDDEN');
  const lacksRole = policy.role !== '' && principal.kind === 'USER' && !principal.roles.includes(policy.role);
  if (lacksRole)
    throw policy.role === 'admin'
      ? new ServiceError('ADMIN_REQUIRED')
      : new ServiceError('FORBIDDEN', `The role ${policy.role} is required`);
}
