import { openJsonReader, type JsonReader } from '../../src/json/json-reader.ts';
import { costlyBodies } from '../../../platform/test/json/costly-bodies.ts';

let json: JsonReader;
beforeEach(() => void (json = openJsonReader()));
afterEach(() => json.close());

const readText = async (text: string, organizationId = 'A', schemas: string[] = []): Promise<string> =>
  (await json.read(organizationId, Buffer.from(new TextEncoder().encode(text).buffer), schemas)).toString();
/** Turns of the event loop until the promise is settled. */
async function turnsDuring(work: Promise<unknown>): Promise<number> {
  let isDone = false;
  let turns = 0;
  void work.finally(() => (isDone = true)).catch(() => undefined);
  for (; !isDone; turns++) await new Promise((resolve) => void setImmediate(resolve));
  return turns;
}
const large = JSON.stringify({ text: 'é'.repeat(100_000) });

it.each(Object.entries(costlyBodies()))('the event loop turns while a body of 1 MiB is read: %s', async (_, text) => {
  const read = readText(text);
  expect(await turnsDuring(read)).toBeGreaterThan(1);
  expect(JSON.parse(await read)).toEqual(JSON.parse(text));
});
it('a small body is read at once', async () => {
  const read = readText('{"a" : 1}');
  expect(await turnsDuring(read)).toBe(1);
  expect(await read).toBe('{"a":1}');
});
it.each([
  ['small', '1'],
  ['large', large],
])('the limits of a schema are read as integers of any size in a %s body', async (_, value) => {
  const body = `{"a":${value},"jsonSchema":{"maximum":9223372036854775807}}`;
  expect(await readText(body, 'A', ['jsonSchema'])).toBe(body);
  await expect(readText(body)).rejects.toMatchObject({ details: [{ path: '/jsonSchema/maximum' }] });
});
it('a fault in a large body is the same ServiceError as in a small one', async () => {
  const faulty = `{"a":[${large},{"b":1,"b":2}]}`;
  await expect(readText(faulty)).rejects.toMatchObject({
    reason: 'INVALID_REQUEST',
    message: 'The name appears twice in its object',
    details: [{ path: '/a/1/b', message: 'The name appears twice in its object' }],
  });
  await expect(readText(`${large}}`)).rejects.toMatchObject({ reason: 'MALFORMED_JSON' });
  expect(await readText(large)).toBe(large);
});
it('the large bodies of one organization do not wait for all those of another', async () => {
  const order: string[] = [];
  await Promise.all(['A', 'A', 'A', 'A', 'B', 'B'].map((id) => readText(large, id).then(() => order.push(id))));
  expect(order.join('')).toBe('AABABA');
});
