import type { IncompatibleObject } from 'proto/memory/v1/memory.ts';
import { parseJson } from 'platform/core/parse-json.ts';
import { sentenceAbout } from 'platform/core/sentence.ts';
import type { Deps } from '../deps.ts';
import { violationsOf } from '../objects/content.ts';
import type { MemoryObjectRecord } from '../objects/store.ts';
import type { Definition } from '../types/rules.ts';
import { progressOp, withExamples, withProgress, type TypeChangeRecord } from './store.ts';

/** Objects that are in memory at once, of up to 256 KiB each. */
const PAGE = 32;
/** After a crash the objects of this time are checked again. */
const SAVE_MS = 1_000;

type Needs = Pick<Deps, 'objects' | 'changes' | 'storeNow' | 'schedule' | 'schemas' | 'config'>;

/**
 * Checks the objects of the type against its next definition, from the last one that was checked on, in the order of
 * their ids. An object that is written meanwhile obeys both definitions, so it may be passed over.
 * @returns the record as it is to be written last; less has been checked if `signal` is aborted
 * @throws ExpectationFailedError when the work was cancelled, or another process goes on with it
 */
export async function checkObjects(
  { objects, changes, storeNow, schedule, schemas, config }: Needs,
  change: TypeChangeRecord,
  signal: AbortSignal,
): Promise<TypeChangeRecord> {
  const { _id: typeId, organizationId } = change;
  const next = JSON.parse(change.next) as Definition;
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
      const wrong = await schedule(organizationId, () => check(object));
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
