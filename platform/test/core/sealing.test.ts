import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { inspect } from 'node:util';
import fc from 'fast-check';
import type { Log } from 'platform/core/log.ts';
import { makeMasterKey, masterKeysIn } from 'platform/core/master-key.ts';
import { keyIdOf, openSealing, type Sealing } from 'platform/core/sealing.ts';
import { eventually } from 'platform/service/test-end.ts';
import { temporaryFolder } from 'platform/service/testing.ts';

const folder = temporaryFolder();
const opened: Sealing[] = [];
afterEach(() => opened.splice(0).forEach((sealing) => sealing.close()));
afterAll(() => folder.remove());
let files = 0;
const newFile = (...lines: string[]): string => {
  const file = join(folder.path, `master-key-${(files += 1)}`);
  writeFileSync(file, lines.join(''));
  return file;
};
function open(file: string, given?: Parameters<typeof openSealing>[1]): Sealing {
  const sealing = openSealing(file, given);
  opened.push(sealing);
  return sealing;
}
const [OLD, NEW, NEXT] = [makeMasterKey(), makeMasterKey(), makeMasterKey()];
const idOf = (line: string): string => masterKeysIn(line, 'a file')[0]!.id;
const at = (line: string, ms: number): string => line.replace('\n', ` ${new Date(ms).toISOString()}\n`);

/** As the release before sealed and opened: with the first key of the file, which no text names. */
const before = {
  seal(line: string, purpose: string, secret: string): string {
    const iv = randomBytes(12);
    const cipher = createCipheriv('aes-256-gcm', Buffer.from(line.trim(), 'base64'), iv).setAAD(Buffer.from(purpose));
    const text = Buffer.concat([cipher.update(secret, 'utf8'), cipher.final()]);
    return Buffer.concat([iv, cipher.getAuthTag(), text]).toString('base64');
  },
  open(line: string, purpose: string, sealed: string): string {
    const bytes = Buffer.from(sealed, 'base64');
    const key = Buffer.from(line.trim(), 'base64');
    const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, 12))
      .setAAD(Buffer.from(purpose))
      .setAuthTag(bytes.subarray(12, 28));
    return decipher.update(bytes.subarray(28), undefined, 'utf8') + decipher.final('utf8');
  },
};
/** Why a text does not open: the reason of a ServiceError, or `changed`. */
function faultOf(sealing: Sealing, purpose: string, sealed: string): string | undefined {
  try {
    sealing.open(purpose, sealed);
    return undefined;
  } catch (error) {
    return (error as { reason?: string }).reason ?? 'changed';
  }
}

const text = fc.string({ unit: 'binary', maxLength: 60 });

describe('what is sealed', () => {
  it('opens at every step of a rotation, for its purpose alone, and names its key', () => {
    const steps = [[OLD], [at(NEW, Date.now() + 3.6e6), OLD], [NEW, OLD], [NEXT, NEW, OLD]];
    const sealings = steps.map((lines) => open(newFile(...lines)));
    const expected = [OLD, OLD, NEW, NEXT].map(idOf);
    fc.assert(
      fc.property(text, text, text, fc.nat(3), (purpose, other, secret, step) => {
        const sealed = sealings[step]!.seal(purpose, secret);
        expect(keyIdOf(sealed)).toBe(expected[step]);
        // every state of the file that has the key
        for (const sealing of sealings.slice(step === 2 ? 1 : step)) {
          expect(sealing.open(purpose, sealed)).toBe(secret);
          if (other !== purpose) expect(faultOf(sealing, other, sealed)).toBe('changed');
        }
      }),
    );
  });

  it('does not open when one character of it was changed', () => {
    const sealing = open(newFile(NEW, OLD));
    fc.assert(
      fc.property(text, fc.nat(), fc.constantFrom('A', 'b', '0', '/'), (secret, position, character) => {
        const sealed = sealing.seal('purpose', secret);
        const index = position % sealed.indexOf('=');
        const changed = sealed.slice(0, index) + character + sealed.slice(index + 1);
        // The last character also has bits that stand for nothing.
        fc.pre(!Buffer.from(changed, 'base64').equals(Buffer.from(sealed, 'base64')));
        expect(faultOf(sealing, 'purpose', changed)).toBe('changed');
      }),
    );
  });

  it('under a key that is not there is told apart from what was changed', () => {
    const sealed = open(newFile(NEW)).seal('purpose', 'secret');
    const sealing = open(newFile(OLD));
    expect(faultOf(sealing, 'purpose', sealed)).toBe('UNAVAILABLE');
    expect(sealing.ageOf('purpose', sealed)).toBe('lost');
    expect(faultOf(sealing, 'purpose', sealed.replace(/=.*/, `=${idOf(OLD)}`))).toBe('changed');
    expect(faultOf(sealing, 'purpose', before.seal(NEW, 'purpose', 'secret'))).toBe('UNAVAILABLE');
  });

  it('by the release before opens under every key of the file, and counts as older', () => {
    const sealing = open(newFile(NEW, OLD));
    fc.assert(
      fc.property(text, fc.constantFrom(NEW, OLD), (secret, line) => {
        const sealed = before.seal(line, 'purpose', secret);
        expect(sealing.open('purpose', sealed)).toBe(secret);
        expect(faultOf(sealing, 'another', sealed)).toBe('UNAVAILABLE');
        expect(sealing.ageOf('purpose', sealed)).toBe('older');
      }),
    );
  });

  it('can be opened by a replica of the release before, whose file is the same', () => {
    const sealing = open(newFile(OLD));
    fc.assert(
      fc.property(text, (secret) => expect(before.open(OLD, 'purpose', sealing.seal('purpose', secret))).toBe(secret)),
    );
  });

  it('is older when a newer key seals, and present under a key that will seal', () => {
    let now = Date.now();
    const clock = { now: () => now };
    const sealing = open(newFile(at(NEW, now + 1_000), OLD), { clock });
    const [old, coming] = [open(newFile(OLD)).seal('a', 'x'), open(newFile(NEW)).seal('a', 'x')];
    const ages = () => [sealing.sealsUnder(), sealing.ageOf('a', old), sealing.ageOf('a', coming)];
    expect(ages()).toEqual([idOf(OLD), 'present', 'present']);
    now += 999;
    expect(keyIdOf(sealing.seal('a', 'x'))).toBe(idOf(OLD));
    now += 1;
    expect(keyIdOf(sealing.seal('a', 'x'))).toBe(idOf(NEW));
    expect(ages()).toEqual([idOf(NEW), 'older', 'present']);
  });
});

describe('the file of the master key', () => {
  it('opens while the file is gone, and is sealed under another key as soon as that is there', () => {
    const file = newFile(OLD);
    const sealing = open(file);
    rmSync(file);
    expect(sealing.hasFile()).toBe(false);
    expect(sealing.open('purpose', sealing.seal('purpose', 'secret'))).toBe('secret');
    writeFileSync(file, NEW);
    expect(keyIdOf(sealing.seal('purpose', 'secret'))).toBe(idOf(NEW));
    expect(sealing.hasFile()).toBe(true);
  });

  it('is read again when it changes', async () => {
    const file = newFile(OLD);
    const sealing = open(file);
    writeFileSync(file, NEW + OLD);
    await eventually(() => sealing.sealsUnder() === idOf(NEW));
  });

  it('is read at once when a text names a key that is not known yet', () => {
    const file = newFile(OLD);
    const sealing = open(file);
    const sealed = open(newFile(NEW)).seal('purpose', 'secret');
    writeFileSync(file, NEW + OLD);
    expect(sealing.open('purpose', sealed)).toBe('secret');
  });

  const TORN = NEW.slice(0, 30);
  it.each([
    ['empty', ''],
    ['torn', TORN],
    ['torn in its second line', OLD + TORN],
    ['of another kind', '-----BEGIN PRIVATE KEY-----\n'],
    ['with a time that is none', at(NEW, 0).replace('1970', 'abcd')],
    ['with two keys in one line', `${NEW.trim()}${OLD}`],
  ])('that is %s keeps the keys of before, and the log says so without a key', (_what, content) => {
    const file = newFile(OLD);
    const logged: string[] = [];
    const note = (...facts: unknown[]) => logged.push(inspect(facts, { depth: 9, showHidden: true }));
    const sealing = open(file, { log: { warn: note } as unknown as Log });
    const elsewhere = open(newFile(NEW)).seal('purpose', 'secret');
    writeFileSync(file, content);
    const start = () => open(file);
    expect(start).toThrow(/does not hold a master key/);
    // each time, the file is read anew
    for (let times = 0; times < 8; times++) expect(faultOf(sealing, 'purpose', elsewhere)).toBe('UNAVAILABLE');
    expect(sealing.open('purpose', sealing.seal('purpose', 'secret'))).toBe('secret');
    expect(logged).toEqual([expect.stringContaining('the changed file of the master key is not used')]);
    for (const line of [OLD, NEW, TORN]) expect(logged.join()).not.toContain(line.slice(0, 12));
    writeFileSync(file, NEW + OLD);
    expect(sealing.open('purpose', elsewhere)).toBe('secret');
  });

  it('that is gone keeps the keys of before', () => {
    const file = newFile(OLD);
    const sealing = open(file);
    const elsewhere = open(newFile(NEW)).seal('purpose', 'secret');
    rmSync(file);
    expect(faultOf(sealing, 'purpose', elsewhere)).toBe('UNAVAILABLE');
    expect(sealing.sealsUnder()).toBe(idOf(OLD));
  });

  it('shows no key where its keys, ids or sealed texts are printed', () => {
    const file = newFile(NEW, OLD);
    const keys = masterKeysIn(readFileSync(file, 'utf8'), file);
    const sealing = open(file);
    const shown = [
      inspect([keys, sealing], { depth: 9, showHidden: true }),
      JSON.stringify(keys),
      sealing.seal('a', 'b'),
    ];
    for (const line of [OLD, NEW])
      for (const encoding of ['base64', 'hex', 'base64url'] as const)
        expect(shown.join()).not.toContain(Buffer.from(line, 'base64').toString(encoding).slice(0, 16));
    expect(shown[0]).toContain(idOf(OLD));
  });
});
