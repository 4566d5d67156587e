import { AsyncLocalStorage } from 'node:async_hooks';
import { codeOf, ERRORS, isFault, ServiceError } from '../core/errors.ts';
import { newId } from '../core/ids.ts';
import { formatTraceparent, parseTraceparent, rootTraceId, type TraceScope } from './traceparent.ts';

export type SpanKind = 'internal' | 'server' | 'client' | 'producer' | 'consumer';
/** Ids and names of ours only: never a value of a client, a secret, an e-mail address or a network address. */
export type Attributes = Readonly<Record<string, string | number | undefined>>;

export interface OpenSpan {
  readonly scope: TraceScope;
  rename(name: string): void;
  set(attributes: Attributes): void;
  /** `type` is a code or the name of a class, never a message: messages quote what clients send. */
  fail(error: { type: string; isFault: boolean }): void;
  end(): void;
}

/** Makes and exports spans; otlp.ts is the one that is used. */
export interface SpanWriter {
  /** @param parent the span that it is a part of; with an empty `spanId`, it is the first one of its trace */
  open(kind: SpanKind, name: string, attributes: Attributes, parent: TraceScope): OpenSpan;
  /** @param asked what the caller has decided, if there is one */
  isSampled(asked: boolean | undefined): boolean;
}

let writer: SpanWriter | undefined;
const scopes = new AsyncLocalStorage<TraceScope | undefined>();

/** Turns traces on, or off with undefined. Of the whole process, as is the scope that they are in. */
export const useSpanWriter = (given: SpanWriter | undefined): void => void (writer = given);

export const isTracing = (): boolean => writer !== undefined;

/** Undefined for work that is not of a request, and while traces are off. */
export const traceScope = (): TraceScope | undefined => (writer === undefined ? undefined : scopes.getStore());

/** The scope in the form of W3C Trace Context, for another process; empty when there is none. */
export function traceparent(): string {
  const scope = traceScope();
  return scope ? formatTraceparent(scope) : '';
}

export const isSampled = (): boolean => traceScope()?.isSampled === true;

/** For lines of a log. */
export function traceFacts(): { traceId?: string; spanId?: string } {
  const { traceId, spanId, isSampled } = traceScope() ?? {};
  return traceId === undefined ? {} : isSampled ? { traceId, spanId } : { traceId };
}

export const inScope = <T>(scope: TraceScope | undefined, work: () => T): T =>
  writer === undefined ? work() : scopes.run(scope, work);

/** Does work for several requests in the scope of one that is sampled, if there is one. */
export const inScopeOfOne = <T>(of: readonly (TraceScope | undefined)[], work: () => T): T =>
  inScope(of.find((scope) => scope?.isSampled) ?? of[0], work);

/** For what a request only starts, and which goes on for others: a timer that starts itself anew, for example. */
export const outsideTraces = <T>(work: () => T): T => inScope(undefined, work);

/**
 * The scope of a request that comes from another process, while traces are on: that of the caller, or a new trace.
 * @param mayAsk of a caller that is no process of ours: whether it may ask for this trace to be sampled. It cannot ask
 * for the opposite.
 */
export function scopeOfRequest(header: string, requestId: string, mayAsk?: () => boolean): TraceScope {
  const caller = parseTraceparent(header);
  const asked = mayAsk ? (caller?.isSampled && mayAsk()) || undefined : caller?.isSampled;
  const isSampled = writer?.isSampled(asked) ?? false;
  if (caller) return caller.isSampled === isSampled ? caller : { ...caller, isSampled };
  return { traceId: rootTraceId(requestId, newId), spanId: '', isSampled };
}

/** Opens a span below the scope; undefined when the scope is not sampled. */
export const openSpan = (
  kind: SpanKind,
  name: string,
  attributes: Attributes,
  parent = traceScope(),
): OpenSpan | undefined =>
  writer !== undefined && parent?.isSampled ? writer.open(kind, name, attributes, parent) : undefined;

/** Does the work in a span, if its trace is sampled; otherwise it only does the work, in the scope of the parent. */
export function inSpan<T>(
  kind: SpanKind,
  name: string,
  attributes: () => Attributes,
  work: () => Promise<T>,
  parent = traceScope(),
): Promise<T> {
  if (writer === undefined) return work();
  if (!parent?.isSampled) return parent === scopes.getStore() ? work() : scopes.run(parent, work);
  const span = writer.open(kind, name, attributes(), parent);
  return endWith([span], scopes.run(span.scope, work));
}

/** Ends the spans with the work, whose outcome they tell. */
export async function endWith<T>(spans: readonly OpenSpan[], work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    for (const span of spans) span.fail(failureOf(error));
    throw error;
  } finally {
    for (const span of spans) span.end();
  }
}

/** By which a store says that another request was first. */
const LOST_RACES = ['DuplicateKeyError', 'ExpectationFailedError'];

/** What the caller or an agent has done wrong is no fault, neither is a race that was lost. */
function failureOf(error: unknown): { type: string; isFault: boolean } {
  if (error instanceof ServiceError) {
    const type = codeOf(error.reason);
    return { type, isFault: isFault(ERRORS[error.reason].http, type) };
  }
  const type = error instanceof Error ? error.name : 'unknown';
  return { type, isFault: !LOST_RACES.includes(type) };
}
