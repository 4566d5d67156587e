import { createHash } from 'node:crypto';
import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { makeMasterKey, masterKeysIn } from 'platform/core/master-key.ts';
import { keyFolderOf, masterKeyFileOf } from 'platform/rpc/keys.ts';
import { eventually } from 'platform/service/test-end.ts';
import { temporaryFolder } from 'platform/service/testing.ts';
import { commandLine, json, printed, sentence, type CommandLine } from '../admin/admin-command.ts';
import { relay } from '../support/nothing-lost.ts';
import { runToEnd, spawnProcess, exitOf } from '../support/run-process.ts';
import { keysIn } from '../support/secret-search.ts';
import { REPOSITORY, startStack, type Stack } from '../support/stack.ts';
import type { Tenant } from '../support/tenant.ts';

const MAIN = join(REPOSITORY, 'admin/src/main.ts');
const NAMES = [
  'agents.db',
  'auth.db',
  'credits.db',
  'events.db',
  'manifest.json',
  'memory.db',
  'revoked.txt',
  'seeded',
];

describe('a backup', () => {
  const folder = temporaryFolder();
  const path = (name: string): string => join(folder.path, name);
  const whole = path('whole');
  let stack: Stack;
  let tenant: Tenant;
  let admin: CommandLine;
  let masterKey: string;
  let made: { takenAt: string; masterKeys: string[]; sha256: string };
  beforeAll(async () => {
    stack = await startStack();
    tenant = await stack.tenant({ credits: 10 });
    admin = commandLine(stack.env);
    masterKey = masterKeyFileOf(keyFolderOf(stack.folder));
    await relay(stack);
    made = await json(admin(`--json backup ${whole}`));
  });
  afterAll(async () => {
    await stack.stop();
    folder.remove();
  });

  let copies = 0;
  /** A copy of the whole backup in which something is changed. */
  function changed(change: (copy: string) => void): string {
    const copy = path(`changed-${++copies}`);
    cpSync(whole, copy, { recursive: true });
    change(copy);
    return copy;
  }
  /** Makes the manifest fit what somebody has changed. */
  function fit(copy: string, change: (manifest: Record<string, unknown>) => void = () => undefined): void {
    const file = join(copy, 'manifest.json');
    const { sha256: _, ...manifest } = JSON.parse(readFileSync(file, 'utf8'));
    const digest = (text: string | Buffer): string => createHash('sha256').update(text).digest('hex');
    for (const one of manifest.files) {
      one.bytes = statSync(join(copy, one.name)).size;
      one.sha256 = digest(readFileSync(join(copy, one.name)));
    }
    change(manifest);
    writeFileSync(file, JSON.stringify({ ...manifest, sha256: digest(JSON.stringify(manifest)) }));
  }
  const query = (sql: string) => (file: string) => {
    using db = new DatabaseSync(file);
    db.exec(`PRAGMA journal_mode = DELETE; ${sql}`);
  };
  afterEach(() => rmSync(path('never'), { recursive: true, force: true }));
  const restored = (backup: string, more = ` --master-key ${masterKey}`) =>
    admin(`restore ${backup} ${path('never')}${more}`);
  /** What standard error says of a restore that must fail and leave nothing behind. */
  async function refusal(backup: string): Promise<string> {
    const { code, stdout, stderr } = await restored(backup);
    expect({ code, stdout, left: readdirSync(folder.path).filter((name) => name.startsWith('never')) }).toEqual({
      code: 1,
      stdout: '',
      left: [],
    });
    return stderr.trimEnd();
  }

  it('has no key in it, and only its owner can read it', () => {
    expect(readdirSync(whole).sort()).toEqual(NAMES);
    expect(statSync(whole).mode & 0o777).toBe(0o700);
    const keys = keysIn(stack.folder);
    expect(keys.length).toBeGreaterThan(5);
    for (const name of NAMES) {
      expect(statSync(join(whole, name)).mode & 0o777).toBe(0o600);
      const bytes = readFileSync(join(whole, name));
      for (const key of keys) {
        expect(bytes.includes(key)).toBe(false);
        expect(bytes.includes(Buffer.from(key, 'base64'))).toBe(false);
      }
    }
    expect(made.masterKeys).toEqual(masterKeysIn(readFileSync(masterKey, 'utf8'), masterKey).map(({ id }) => id));
  });

  it('is refused when a byte of it differs, naming the file', async () => {
    const flip = (name: string) => (copy: string) => {
      const bytes = readFileSync(join(copy, name));
      bytes[bytes.length >> 1]! ^= 1;
      writeFileSync(join(copy, name), bytes);
    };
    const flipped = changed(flip('auth.db'));
    expect(await refusal(flipped)).toBe(`The backup ${flipped} is damaged:\n  auth.db differs from its checksum`);
    const several = changed((copy) => {
      appendFileSync(join(copy, 'memory.db'), 'x');
      rmSync(join(copy, 'events.db'));
      writeFileSync(join(copy, 'other.db'), '');
    });
    const { size } = statSync(join(whole, 'memory.db'));
    expect(await refusal(several)).toBe(
      [
        `The backup ${several} is damaged:`,
        'other.db does not belong to it',
        'events.db is missing',
        `memory.db has ${size + 1} bytes in place of ${size}`,
      ].join('\n  '),
    );
    const manifest = changed((copy) => {
      const file = join(copy, 'manifest.json');
      writeFileSync(file, readFileSync(file, 'utf8').replace(/"bytes": 1/, '"bytes": 2'));
    });
    expect(await refusal(manifest)).toBe(`${manifest}/manifest.json is damaged: it differs from its own checksum`);
    const cut = changed((copy) => writeFileSync(join(copy, 'manifest.json'), '{"product":'));
    expect(await refusal(cut)).toMatch(/manifest\.json is damaged: Unexpected end of JSON input$/);
  });

  it('is refused when it is of another product, format or later release', async () => {
    expect(await refusal(stack.folder)).toBe(
      `${stack.folder} is not a backup, or not a whole one: it has no manifest.json`,
    );
    const foreign = changed((copy) => fit(copy, (manifest) => (manifest.product = 'other')));
    expect(await refusal(foreign)).toBe(`${foreign}/manifest.json is not the manifest of a backup of this product`);
    const format = changed((copy) => fit(copy, (manifest) => (manifest.format = 2)));
    expect(await refusal(format)).toMatch(/ has the format 2, but release \S+ reads only 1$/);
    const later = changed((copy) => fit(copy, (manifest) => (manifest.release = '0.1000.0')));
    expect(await refusal(later)).toMatch(
      / was made by release 0\.1000\.0, and this is \S+: restore it with that release$/,
    );
  });

  it('is refused when its manifest names other files than a backup has, so nothing is written elsewhere', async () => {
    const changes: [(files: { name: string }[]) => void, string][] = [
      [(files) => files.push({ ...files[0]!, name: '../.profile' }), 'no file of a backup is named ../.profile'],
      [(files) => files.push(files.find(({ name }) => name === 'auth.db')!), 'it has auth.db twice'],
      [
        (files) =>
          files.splice(
            files.findIndex(({ name }) => name === 'auth.db'),
            1,
          ),
        'it lacks auth.db',
      ],
    ];
    for (const [change, fault] of changes) {
      const forged = changed((copy) => fit(copy, ({ files }) => change(files as { name: string }[])));
      expect(await refusal(forged)).toBe(`${forged}/manifest.json is not the manifest of a backup:\n  ${fault}`);
    }
  });

  it('is refused when its chains or rows are not whole, also if its checksums fit', async () => {
    const tampered = (name: string, sql: string) =>
      changed((copy) => {
        query(sql)(join(copy, name));
        fit(copy);
      });
    const secondEntry = `organizationId = x'${tenant.organizationId.replaceAll('-', '')}' AND sequence = 2`;
    const entry = tampered('auth.db', `UPDATE audit_entries SET outcome = 'denied' WHERE ${secondEntry}`);
    expect(await refusal(entry)).toBe(
      'The copy of auth.db is not whole:\n' +
        `  The audit trail of the organization ${tenant.organizationId} has an entry 2 that was changed`,
    );
    expect(await refusal(tampered('memory.db', 'DELETE FROM types'))).toContain(
      'The backup is not what its manifest says:\n  memory.db: types has 0 rows in place of 1',
    );
  });

  it('needs the master key, and says which', async () => {
    const [id] = made.masterKeys;
    expect(await sentence(restored(whole, ''))).toBe(
      `The backup holds what is sealed under the master key ${id}, which is not in it: give its file with --master-key, ` +
        'or give up what is sealed with --without-master-key',
    );
    const other = path('other-key');
    writeFileSync(other, makeMasterKey());
    expect(await sentence(restored(whole, ` --master-key ${other}`))).toMatch(
      new RegExp(`^${other} does not hold the master key ${id}, only [0-9a-f]{12}$`),
    );
    const without = path('without');
    await admin(`restore ${whole} ${without} --without-master-key`);
    expect(readdirSync(without).sort()).toEqual(
      [...NAMES.filter((name) => name.endsWith('.db')), 'keys', 'seeded'].sort(),
    );
    expect(readdirSync(join(without, 'keys'))).toEqual(['revoked.txt']);
  });

  it('goes only into a new or empty folder, as a restore does', async () => {
    expect(await sentence(admin(`backup ${whole}`))).toBe(`${whole} is not empty: give a folder that is new or empty`);
    expect(await sentence(admin(`restore ${whole} ${stack.folder} --master-key ${masterKey}`))).toBe(
      `${stack.folder} is not empty: give a folder that is new or empty`,
    );
    expect(await sentence(admin(`backup ${masterKey}`))).toMatch(/ cannot be written: ENOTDIR/);
    const empty = path('empty');
    mkdirSync(empty, { mode: 0o700 });
    await printed(admin(`--json backup ${empty}`));
    expect(readdirSync(empty).sort()).toEqual(NAMES);
  });

  it('is not there at all when its process is killed, and the next one says what is left', async () => {
    const target = path('killed');
    const { child } = spawnProcess(process.execPath, [MAIN, 'backup', target], {
      env: { ...process.env, NODE_OPTIONS: '', ...stack.env },
    });
    await eventually(() => existsSync(join(`${target}.incomplete`, 'credits.db')));
    child.kill('SIGKILL');
    await exitOf(child);
    expect(existsSync(target)).toBe(false);
    expect(await refusal(`${target}.incomplete`)).toBe(
      `${target}.incomplete is not a backup, or not a whole one: it has no manifest.json`,
    );
    expect(await sentence(admin(`backup ${target}`))).toBe(
      `${target}.incomplete is there: another run fills it, or one was interrupted. If none runs, remove it`,
    );
    expect((await tenant.request('POST', '/api/memory/types', { type: 'after', jsonSchema: {} })).status).toBe(201);
    rmSync(`${target}.incomplete`, { recursive: true });
    await printed(admin(`--json backup ${target}`));
  });

  it('leaves nothing when it cannot be written, and says so', async () => {
    const target = path('full');
    // the system refuses to make a file larger than this, as a full disk does
    const limited = `trap '' XFSZ; ulimit -f 64; exec ${process.execPath} ${MAIN} backup ${target}`;
    const { code, stderr } = await runToEnd('bash', ['-c', limited], { env: stack.env });
    expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringMatching(/ cannot be written: .+\n$/) });
    expect(readdirSync(folder.path).filter((name) => name.startsWith('full'))).toEqual([]);
  });

  it('is refused for data that is on a server, or that nobody serves here', async () => {
    const target = path('elsewhere');
    expect(await sentence(admin(`backup ${target}`, { MONGODB_URL: 'mongodb://127.0.0.1:1' }))).toBe(
      'MONGODB_URL is set, but only embedded databases are backed up so: see docs/operations.md',
    );
    expect(await sentence(admin(`backup ${target}`, { DATA_DIR: path('nothing') }))).toBe(
      `There is no ${path('nothing')}/events.db`,
    );
    expect(existsSync(target)).toBe(false);
  });
});
