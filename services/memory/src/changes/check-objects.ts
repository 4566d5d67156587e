import type { IncompatibleObject } from 'proto/memory/v1/memory.ts';
import { parseJson } from 'platform/core/parse-json.ts';
import { sentenceAbout } from 'platform/core/sentence.ts';
import type { Deps } from '../deps.ts';
import { violationsOf } from '../objects/content.ts';
import { asRead, OBJECTS, type MemoryObjectRecord } from '../objects/store.ts';
import { liveRelations, planReferences } from '../references/plan-references.ts';
import type { Definition } from '../types/rules.ts';
import type { MemoryTypeRecord } from '../types/store.ts';
import { retryOnConflict } from 'platform/store/retry-on-conflict.ts';
import { update } from 'platform/store/store.ts';
import { progressOp, withExamples, withProgress, type TypeChangeRecord } from './store.ts';

/** Objects that are in memory at once, of up to 256 KiB each. */
const PAGE = 32;
/** After a crash the objects of this time are checked again. */
const SAVE_MS = 1_000;

type Needs = Pick<Deps, 'objects' | 'references' | 'changes' | 'storeNow' | 'schedule' | 'schemas' | 'config'>;

/**
 * Checks the objects of the type against its next definition, from the last one that was checked on, in the order of
 * their ids. An object that is written meanwhile obeys both definitions, so it may be passed over.
 * @returns the record as it is to be written last; less has been checked if `signal` is aborted
 * @throws ExpectationFailedError when the work was cancelled, or another process goes on with it
 */
export async function checkObjects(
  deps: Needs,
  change: TypeChangeRecord,
  type: MemoryTypeRecord,
  signal: AbortSignal,
): Promise<TypeChangeRecord> {
  const { objects, changes, storeNow, schedule, schemas, config } = deps;
  const { _id: typeId, organizationId } = change;
  const next = parseJson(change.next) as Definition;
  const hasRelations = next.relations !== '[]';
  let held = change;
  let savedAt = performance.now();
  const check = (object: MemoryObjectRecord): IncompatibleObject | undefined => {
    const { _id: id, key } = object;
    const content = parseJson(object.content) as Record<string, unknown>;
    const { violations, derived } = violationsOf(schemas, { organizationId, ...next }, content);
    const [first] = violations;
    if (first) return { id, key, path: first.path, message: sentenceAbout(first.path, first.message) };
    if (derived === undefined || derived === key) return undefined;
    return { id, key, path: '/key', message: 'key is not what the idSchema makes of the content' };
  };
  for (;;) {
    if (signal.aborted) return held;
    const page = await objects.ofType(organizationId, typeId, { limit: PAGE, after: held.cursor });
    const found: IncompatibleObject[] = [];
    for (const object of page) {
      const wrong =
        (await schedule(organizationId, () => check(object))) ??
        (hasRelations ? await makeReferences(deps, change, type, object, signal) : undefined);
      if (wrong) found.push(wrong);
    }
    const progress = {
      checked: held.checked + page.length,
      incompatible: held.incompatible + found.length,
      examples: withExamples(held, found),
      cursor: page.at(-1)?._id ?? held.cursor,
    };
    if (page.length < PAGE) return { ...held, ...progress };
    if (performance.now() - savedAt < SAVE_MS) {
      held = { ...held, ...progress };
      continue;
    }
    const saved = { ...progress, leaseUntil: (await storeNow()) + config.LEASE_MS };
    await changes.apply(organizationId, [progressOp(held, saved)]);
    held = withProgress(held, saved);
    savedAt = performance.now();
  }
}

/**
 * Writes the references that an object has by what its type is to be; a dry run only looks for their targets.
 * @returns the object when a target is missing
 */
async function makeReferences(
  deps: Needs,
  { organizationId, action, next }: TypeChangeRecord,
  type: MemoryTypeRecord,
  { _id }: MemoryObjectRecord,
  signal: AbortSignal,
): Promise<IncompatibleObject | undefined> {
  const relations = liveRelations({ ...type, next });
  return retryOnConflict(signal, async () => {
    const object = await deps.objects.byId(organizationId, _id);
    if (!object) return undefined;
    const plan = await planReferences(deps, object, relations, parseJson(object.content) as Record<string, unknown>);
    if ('violations' in plan) {
      const { path, message } = plan.violations[0]!;
      return { id: _id, key: object.key, path, message: sentenceAbout(path, message) };
    }
    if (action === 'update' && plan.ops.length > 0)
      await deps.objects.apply(organizationId, [
        update(
          OBJECTS,
          { ...asRead(object), references: object.references ?? null },
          { set: { references: plan.references } },
        ),
        ...plan.ops,
      ]);
    return undefined;
  });
}
