import { jest } from '@jest/globals';
import { fullFormats } from 'ajv-formats/dist/formats.js';
import { newId } from 'platform/core/ids.ts';
import { serverToken } from 'platform/service/testing.ts';
import { errorOf, startMemory, type Memory } from './fixture.ts';

let memory: Memory;
beforeAll(async () => {
  memory = await startMemory();
});
afterAll(() => memory.stop());

const BYTES = 262_144;
/** Texts that are right for long, and wrong at their ends. */
const adverseTexts = [
  ['http://', 'a@', '!'],
  ['http://a.bc/', '/@', '　'],
  ['', '(?<a>)|', '('],
  ['a:', '%41', '%'],
  ['//a@[', '::', ']'],
  ['{', 'a,', '%'],
  ['2026-01-01T00:00:00.', '0', '!'],
  ['a@', 'a-', '!'],
  ['/', '~1', '~'],
  ['', 'AAAA', '\n'],
].map(([head, piece, end]) => {
  const room = BYTES - Buffer.byteLength(JSON.stringify({ text: `${head}${end}` }));
  return head! + piece!.repeat(Math.floor(room / Buffer.byteLength(piece!))) + end!;
});
const subschemas: object[] = [
  ...Object.keys(fullFormats).map((format) => ({ format })),
  { pattern: '^(a+)+$' },
  { pattern: `^(?:${Array.from({ length: 300 }, (_, i) => `${String.fromCharCode(0x4e00 + i)}?`).join('')}!)*$` },
  { pattern: '(?:a?){300}a{300}' },
  { minLength: 1, maxLength: 9_000_000, enum: [adverseTexts[0]!.slice(0, 10_000)] },
];

it('texts of 256 KiB for every format and hostile patterns are answered, and a neighbour before them', async () => {
  const hostile = memory.organization();
  const neighbour = memory.organization();
  const { id: neighbourType } = await neighbour.type();
  const types = await Promise.all(
    subschemas.map((text) => hostile.type({ jsonSchema: JSON.stringify({ properties: { text } }) })),
  );
  const requests = types.flatMap(({ id: typeId }) =>
    adverseTexts.map((text) => ({ typeId, content: JSON.stringify({ text }) })),
  );
  const total = requests.length;
  const outcomes = new Set<string>();
  const sendUntilNoneIsLeft = async (): Promise<void> => {
    for (let request; (request = requests.pop());)
      outcomes.add(
        await hostile.createObject(request).then(
          () => 'created',
          (error: { reason: string }) => error.reason,
        ),
      );
  };
  const flood = Promise.all(Array.from({ length: 4 }, sendUntilNoneIsLeft));
  let neighbours = 0;
  for (; requests.length > 0; neighbours++) await neighbour.object({ typeId: neighbourType });
  await flood;
  // Each of its requests waits for a few of the flood at most.
  expect(neighbours).toBeGreaterThan(total / 20);
  expect([...outcomes].toSorted()).toEqual(['INVALID_CONTENT', 'created']);
});

describe('a schema is compiled', () => {
  // ajv makes its functions with it, and nothing else here does.
  const compilations = jest.spyOn(globalThis, 'Function');
  beforeEach(() => compilations.mockClear());
  afterAll(() => compilations.mockRestore());
  const schema = () => JSON.stringify({ properties: { [newId()]: { type: 'string' } } });
  const capped = async (limits: Record<string, number>) => {
    const organization = memory.organization({ limits });
    const { id } = await organization.type({ jsonSchema: schema() });
    return { organization, id };
  };

  it('when its type is created, and kept for the objects', async () => {
    const { organization, id } = await capped({});
    const once = compilations.mock.calls.length;
    expect(once).toBeGreaterThan(0);
    for (let i = 0; i < 3; i++) await organization.object({ typeId: id, content: '{}' });
    expect(compilations.mock.calls).toHaveLength(once);
  });

  it('not for a type beyond the cap of the tier, or of a name that is taken', async () => {
    const { organization, id } = await capped({ memory_types: 1 });
    const { type } = await organization.getType(id);
    compilations.mockClear();
    expect(await errorOf(organization.createType({ jsonSchema: schema() }))).toMatchObject({
      reason: 'TIER_LIMIT',
      facts: { limit: 'memory_types' },
    });
    expect((await errorOf(organization.createType({ type, jsonSchema: schema() }))).reason).toBe('ALREADY_EXISTS');
    expect(compilations.mock.calls).toHaveLength(0);
  });

  it('not for a change of a type that is unknown or of another organization', async () => {
    const { organization, id } = await capped({});
    compilations.mockClear();
    for (const [caller, typeId, reason] of [
      [organization, newId(), 'NOT_FOUND'],
      [memory.organization(), id, 'NOT_FOUND'],
    ] as const)
      expect((await errorOf(caller.putType(typeId, { jsonSchema: schema() }))).reason).toBe(reason);
    expect(compilations.mock.calls).toHaveLength(0);
  });

  it('not for an object beyond the cap of the tier, of an unknown type, or that does not exist', async () => {
    const { organization, id } = await capped({ memory_objects: 1 });
    const object = await organization.object({ typeId: id, content: '{}' });
    await memory.restart();
    compilations.mockClear();
    const { organizationId } = organization.principal;
    const again = memory.as(serverToken(organizationId, { limits: { memory_objects: 1 } }));
    expect(await errorOf(again.createObject({ typeId: id, content: '{}' }))).toMatchObject({
      reason: 'TIER_LIMIT',
      facts: { limit: 'memory_objects' },
    });
    expect((await errorOf(again.createObject({ typeId: newId(), content: '{}' }))).reason).toBe('NOT_FOUND');
    expect((await errorOf(again.patchObject(newId(), { content: '{}' }))).reason).toBe('NOT_FOUND');
    expect(compilations.mock.calls).toHaveLength(0);
    await again.patchObject(object.id, { content: '{}' });
    expect(compilations.mock.calls.length).toBeGreaterThan(0);
  });
});
