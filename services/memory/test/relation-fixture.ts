import { errorOf, type Caller } from './fixture.ts';

export const jsonSchema = '{"type":"object"}';
type Given = Partial<{ path: string; cardinality: string; required: boolean; onDelete: string; name: string }>;
export const relation = (targetType: string, given: Given = {}) => ({
  name: 'owner',
  targetType,
  path: '/owner',
  cardinality: 'one',
  required: undefined,
  onDelete: undefined,
  ...given,
});

/** Types and objects that refer to each other, as the present caller of a test makes them. */
export const relationFixture = (caller: () => Caller) => ({
  /** A type of persons, and one of things that have an owner. */
  async typesWith(given: Given = {}) {
    const person = await caller().type({ type: 'Person', jsonSchema });
    const thing = await caller().type({ type: 'Thing', jsonSchema, relations: [relation('person', given)] });
    return { person, thing };
  },
  put: (typeId: string, key: string, content: object) =>
    caller().object({ typeId, key, content: JSON.stringify(content) }),
  contentOf: async (id: string): Promise<unknown> => JSON.parse((await caller().getObject(id)).content),
  isGone: (id: string): Promise<boolean> =>
    errorOf(caller().getObject(id)).then(
      () => true,
      () => false,
    ),
});
