import type { LookupAddress } from 'node:dns';
import { lookupInTurn, makeLookupTurns, type LookupAll } from '../../../src/runtimes/network/lookup-in-turn.ts';

const ADDRESS: LookupAddress = { address: '192.0.2.1', family: 4 };
/** Name servers of which those of `slow.example` never answer. */
const asked: string[] = [];
const resolve: LookupAll = (name, _options, callback) => {
  asked.push(name);
  if (!name.endsWith('slow.example')) callback(null, [ADDRESS]);
};
const look = (lookup: LookupAll, name: string): Promise<LookupAddress[]> =>
  new Promise((done, fail) => lookup(name, { all: true }, (error, found) => (error ? fail(error) : done(found))));

it('name servers that never answer hold no look-up of another organization, also when the runs have ended', async () => {
  const turns = makeLookupTurns();
  const runs = new AbortController();
  const slow = lookupInTurn(turns, 'a', runs.signal, resolve);
  void look(slow, '0.slow.example');
  const waiting = Array.from({ length: 20 }, (_, n) => look(slow, `${n + 1}.slow.example`));
  const { signal } = new AbortController();
  expect(await look(lookupInTurn(turns, 'b', signal, resolve), 'b.example')).toEqual([ADDRESS]);
  runs.abort();
  expect(await Promise.allSettled(waiting)).toEqual(waiting.map(() => expect.objectContaining({ status: 'rejected' })));
  void look(lookupInTurn(turns, 'a', signal, resolve), '30.slow.example');
  expect(await look(lookupInTurn(turns, 'b', signal, resolve), 'b.example')).toEqual([ADDRESS]);
  expect(asked).toEqual(['0.slow.example', 'b.example', 'b.example']);
});
