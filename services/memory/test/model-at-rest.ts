import { ListMemoryObjectsRequest } from 'proto/memory/v1/memory.ts';
import { parseJson } from 'platform/core/parse-json.ts';
import type { CloudEvent } from 'platform/events/bus.ts';
import { OUTBOX } from 'platform/events/outbox.ts';
import type { CallContext } from 'platform/rpc/call.ts';
import type { OpenStore } from 'platform/store/store.ts';
import type { Deps } from '../src/deps.ts';
import { violationsOf } from '../src/objects/content.ts';
import { listMemoryObjects } from '../src/objects/list-memory-objects.ts';
import { OBJECTS, type MemoryObjectRecord } from '../src/objects/store.ts';
import { REFERENCES, type ReferenceRecord } from '../src/references/store.ts';
import { wantedReferences } from '../src/references/wanted.ts';
import { FENCES } from '../src/types/fences.ts';
import { relationsOf } from '../src/types/relations.ts';
import { TYPES, type MemoryTypeRecord } from '../src/types/store.ts';
import { USAGE } from '../src/usage/store.ts';
import { contentOf, isOfObject, SCHEMAS, type Command, type Told } from './model-commands.ts';

/** One request of a client, and what it was told: an event that must be there, or a refusal after which none may be. */
export interface Request {
  command: Command;
  actorId: string;
  told?: Told | undefined;
  refusal?: string;
}
/** By request id. */
export type Requests = ReadonlyMap<string, Request>;

interface Stored {
  types: MemoryTypeRecord[];
  objects: MemoryObjectRecord[];
  references: ReferenceRecord[];
  /** Of changes, in their order, by subject. */
  events: Map<string, Event[]>;
  /** Of audit entries: action, target and request. */
  entries: string[];
}
type Event = CloudEvent & {
  data: { requestId: string; actor: { id: string }; schemaVersion?: number; version?: number; content?: unknown };
};

/** What is wrong with what the store holds of the organization, when nothing is under way. */
export async function wrongAtRest(
  opened: OpenStore,
  deps: Deps,
  context: CallContext,
  requests: Requests,
): Promise<unknown[]> {
  const { organizationId } = context.principal;
  const { store, platformStore } = opened;
  const outbox = (await platformStore.find(OUTBOX, { organizationId })).map(({ event }) => JSON.parse(event) as Event);
  const stored: Stored = {
    types: await store.find(organizationId, TYPES, {}),
    objects: await store.find(organizationId, OBJECTS, {}),
    references: await store.find(organizationId, REFERENCES, {}),
    events: Map.groupBy(
      outbox.filter(({ type }) => type.startsWith('memory.')).sort((a, b) => a.sequence - b.sequence),
      ({ subject }) => subject,
    ),
    entries: outbox
      .filter(({ type }) => type === 'audit.entry.v1')
      .map(({ data }) => {
        const { action, target, requestId } = data as unknown as {
          action: string;
          target: { id: string };
          requestId: string;
        };
        return `${action.replace('_', '.')}d ${target.id} ${requestId}`;
      }),
  };
  return [
    ...wrongObjects(deps, stored),
    ...wrongReferences(stored),
    ...wrongTypes(stored),
    ...(await wrongTotals(opened, deps, context, stored)),
    ...wrongEvents(stored),
    ...wrongAnswers(stored, requests),
  ];
}

function wrongObjects({ schemas }: Deps, { types, objects }: Stored): unknown[] {
  return objects.flatMap((object) => {
    const type = types.find(({ _id }) => _id === object.typeId);
    if (!type) return [['no type', object]];
    const content = parseJson(object.content) as Record<string, unknown>;
    const { violations, derived = object.key } = violationsOf(schemas, type, content);
    if (violations.length > 0) return [['invalid', object.content, type.jsonSchema]];
    return derived === object.key ? [] : [['not the key that its type derives', object, derived]];
  });
}

function wrongReferences({ types, objects, references }: Stored): unknown[] {
  const wrong: unknown[] = [];
  for (const object of objects) {
    const type = types.find(({ _id }) => _id === object.typeId);
    const content = parseJson(object.content) as Record<string, unknown>;
    const { wanted, violations } = wantedReferences(type ? relationsOf(type) : [], content);
    if (violations.length > 0) wrong.push(['malformed reference', object.content]);
    for (const { relation, key } of wanted) {
      const target = objects.find((one) => one.typeId === relation.targetTypeId && one.key === key);
      const isRow = references.some(
        ({ sourceId, relationId, targetId }) =>
          sourceId === object._id && relationId === relation.id && targetId === target?._id,
      );
      if (!target || (target !== object && !isRow)) wrong.push(['no target or no row', object, relation]);
    }
    const own = references.filter(({ sourceId }) => sourceId === object._id).length;
    const others = references.filter(({ targetId }) => targetId === object._id).length;
    if (own !== (object.references ?? 0) || others !== (object.referrers ?? 0))
      wrong.push(['miscounted references', object, own, others]);
  }
  const ids = new Set(objects.map(({ _id }) => _id));
  const torn = references.filter(({ sourceId, targetId }) => !ids.has(sourceId) || !ids.has(targetId));
  return [...wrong, ...torn.map((reference) => ['row without an end', reference])];
}

function wrongTypes({ types }: Stored): unknown[] {
  return types.flatMap((type) => {
    if (type.state !== 'active' || type.next) return [['not at rest', type]];
    const pointing = types.filter(({ relationTargets = [] }) => relationTargets.includes(type._id)).length;
    const isTargeted = (type.relationTargets ?? []).every((id) => types.some(({ _id }) => _id === id));
    return pointing === (type.dependents ?? 0) && isTargeted ? [] : [['miscounted dependents', type, pointing]];
  });
}

async function wrongTotals(
  { store }: OpenStore,
  deps: Deps,
  context: CallContext,
  { types, objects }: Stored,
): Promise<unknown[]> {
  const { organizationId } = context.principal;
  const wrong: unknown[] = [];
  const filters = [{}, { key: 'a' }, ...types.map(({ _id }) => ({ typeId: _id }))];
  for (const filter of filters) {
    const { total, items } = await listMemoryObjects(deps, ListMemoryObjectsRequest.fromPartial(filter), context);
    const expected = objects.filter((object) =>
      Object.entries(filter).every(([name, value]) => object[name as 'key' | 'typeId'] === value),
    ).length;
    if (total !== expected || items.length !== expected) wrong.push(['wrong total', filter, total, items, expected]);
  }
  const [usage, fences] = [await store.find(organizationId, USAGE, {}), await store.find(organizationId, FENCES, {})];
  const sum = (numbers: number[]) => numbers.reduce((total, one) => total + one, 0);
  const counted = {
    fences: sum(fences.map(({ count }) => count)) - objects.length,
    objects: sum(usage.map((one) => one.objects)) - objects.length,
    types: sum(usage.map((one) => one.types)) - types.length,
    bytes: sum(usage.map((one) => one.bytes ?? 0)) - sum([...types, ...objects].map(({ bytes }) => bytes ?? 0)),
    schemaBytes:
      sum(usage.map((one) => one.schemaBytes)) - sum(types.map(({ jsonSchema }) => Buffer.byteLength(jsonSchema))),
  };
  return Object.values(counted).every((difference) => difference === 0) ? wrong : [...wrong, ['wrong usage', counted]];
}

/** Every change has its event and its audit entry, and the last one says what is stored. */
function wrongEvents({ types, objects, events, entries }: Stored): unknown[] {
  const wrong: unknown[] = [];
  const unseen = new Map<string, Record<string, unknown>>();
  for (const { _id, revision, version } of types) unseen.set(`types/${_id}`, { revision, version });
  for (const { _id, revision, schemaVersion, content } of objects)
    unseen.set(`objects/${_id}`, { revision, schemaVersion, content: JSON.parse(content) as unknown });
  for (const [subject, ofSubject] of events) {
    const { type, sequence, data } = ofSubject.at(-1)!;
    const now = unseen.get(subject);
    const said: Record<string, unknown> = { ...data, revision: sequence };
    const isGapless = ofSubject.every((event, index) => event.sequence === index + 1);
    const isLast = type.endsWith('.deleted.v1')
      ? now === undefined
      : now !== undefined &&
        Object.entries(now).every(([name, value]) => JSON.stringify(value) === JSON.stringify(said[name]));
    if (!isGapless || !isLast) wrong.push(['events that are not its changes', subject, now, ofSubject]);
    unseen.delete(subject);
  }
  if (unseen.size > 0) wrong.push(['changes without events', [...unseen]]);
  const changes = [...events.values()].flat().map(({ type, subject, data }) => {
    const [, noun, verb] = type.split('.');
    return `memory.${noun}.${verb} ${subject.split('/')[1]} ${data.requestId}`;
  });
  if (changes.sort().join('\n') !== entries.sort().join('\n')) wrong.push(['audit entries that are not its changes']);
  return wrong;
}

/** Refusals that say that nothing was done, of requests that may take several batches. */
const NOTHING_DONE = [
  ...['SCHEMA_INCOMPATIBLE', 'TYPE_CHANGING', 'TYPE_IN_USE', 'ALREADY_EXISTS', 'INVALID_REQUEST', 'INVALID_CONTENT'],
];

/** What clients were told is what the events say. */
function wrongAnswers({ types, events }: Stored, requests: Requests): unknown[] {
  const all = [...events.values()].flat();
  const byRequest = Map.groupBy(all, ({ data }) => data.requestId);
  const wrong: unknown[] = [];
  for (const [id, request] of requests) {
    const { told, refusal, command } = request;
    const made = byRequest.get(id) ?? [];
    if (
      told &&
      !made.some(
        ({ type, subject, sequence }) =>
          type === told.type && subject === told.subject && sequence === (told.revision ?? sequence),
      )
    )
      wrong.push(['acknowledged but not done', request, made]);
    const isNothing = isOfObject(command) ? refusal !== 'OUTCOME_UNKNOWN' : NOTHING_DONE.includes(refusal ?? '');
    if (refusal && isNothing && made.length > 0) wrong.push(['refused but done', request, made]);
    if (made.some(({ data }) => data.actor.id !== request.actorId)) wrong.push(['another actor', request, made]);
    if ('n' in command && made.some(({ data }) => JSON.stringify(data.content) !== contentOf(command)))
      wrong.push(['another content', request, made]);
  }
  for (const { _id, jsonSchema } of types) {
    const command = requests.get(events.get(`types/${_id}`)?.at(-1)?.data.requestId ?? '')?.command;
    if (command?.do === 'schema' && SCHEMAS[command.schema] !== jsonSchema)
      wrong.push(['another schema', _id, command]);
  }
  return wrong;
}
