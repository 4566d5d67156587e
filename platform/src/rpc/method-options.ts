import { CallsServiceService } from 'proto/platform/v1/calls.ts';
import type { KnownReason } from '../core/errors.ts';
import type { PrincipalKind } from '../core/principal.ts';
import { declaredMethods, type DeclaredMethod } from './protos.ts';

/** The option platform.v1.method of one method; proto/platform/v1/options.proto explains its fields. */
export interface MethodOptions {
  principals: readonly PrincipalKind[];
  callers: readonly string[];
  role: string;
  capability: string;
  public: boolean;
  deadlineMs: number;
  /** The method has an idempotency_level: a client may repeat a call whose outcome it does not know. */
  repeatable: boolean;
  /** camelCase name of the request field; empty: none. */
  outlivesClientWith: string;
  ignoredMembers: readonly string[];
  /** Overrides the gateway's limit; 0: it applies. */
  maxBodyBytes: number;
  /** Scope that a server token needs; empty: none. */
  scope: string;
  /** Scope that a server token needs to be told of what is stored; empty: none beside `scope`. */
  readScope: string;
  /** Name of the rate limit that its requests count against. */
  rate: string;
  /** Reasons for which it may refuse, beside those that the other options imply. */
  errors: readonly KnownReason[];
}

/** Longer than two operations on an engine take until they time out, so that the service can report the outcome. */
const DEFAULT_DEADLINE_MS = 12_000;

/** protobufjs yields a bare value for one element and an array for several. */
const list = (value: unknown): string[] =>
  value === undefined ? [] : Array.isArray(value) ? value.map(String) : [String(value)];
/** "path_id" -> "pathId", as the codecs name fields. */
export const camelCase = (name: string): string =>
  name.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());

function optionsOf({ options }: DeclaredMethod): MethodOptions {
  const ours = (options['(platform.v1.method)'] ?? {}) as Record<string, unknown>;
  return {
    principals: list(ours.principals) as PrincipalKind[],
    callers: list(ours.callers),
    role: String(ours.role ?? ''),
    capability: String(ours.capability ?? ''),
    public: ours.public === true,
    deadlineMs: Number(ours.deadline_ms ?? DEFAULT_DEADLINE_MS),
    repeatable: options.idempotency_level === 'NO_SIDE_EFFECTS' || options.idempotency_level === 'IDEMPOTENT',
    outlivesClientWith: camelCase(String(ours.outlives_client_with ?? '')),
    ignoredMembers: list(ours.ignored_members),
    maxBodyBytes: Number(ours.max_body_bytes ?? 0),
    scope: String(ours.scope ?? ''),
    readScope: String(ours.read_scope ?? ''),
    rate: String(ours.rate ?? 'requests'),
    errors: list(ours.errors) as KnownReason[],
  };
}

/** Carries the calls of the other methods. */
const CARRY = CallsServiceService.carry.path;

let all: ReadonlyMap<string, MethodOptions> | undefined;

/** Full method path ("/memory.v1.MemoryService/ListMemoryTypes") -> its options, for every method of the contract. */
export function allMethodOptions(): ReadonlyMap<string, MethodOptions> {
  all ??= new Map(
    declaredMethods()
      .filter(({ path }) => path !== CARRY)
      .map((method) => [method.path, optionsOf(method)]),
  );
  return all;
}

/** @throws Error for a path that the contract does not have */
export function methodOptionsOf(methodPath: string): MethodOptions {
  const options = allMethodOptions().get(methodPath);
  if (!options) throw new Error(`${methodPath} is not in the contract`);
  return options;
}
