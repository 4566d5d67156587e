import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const MAIN = join(import.meta.dirname, '../src/main.ts');
const folder = mkdtempSync(join(tmpdir(), 'aks-'));
const programs = join(folder, 'programs');
const engines = join(folder, 'engines');

beforeAll(() => mkdirSync(programs));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** The command with nothing on its PATH but what a test puts there. */
function engine(...args: string[]) {
  const { stdout, stderr, status } = spawnSync(process.execPath, [MAIN, ...args], {
    env: { PATH: programs, ENGINES_FOLDER: engines },
    encoding: 'utf8',
  });
  return { stdout, stderr, status };
}

function put(program: string, script: string): void {
  writeFileSync(join(programs, program), `#!/bin/sh\n${script}\n`);
  chmodSync(join(programs, program), 0o755);
}

describe('npm run engines', () => {
  it('explains itself', () => {
    const { stdout, status } = engine('--help');
    expect(stdout).toMatch(/up .*\n[^]*down .*\n[^]*status[^]*eval "\$\(npm run -s engines -- up\)"/);
    expect(status).toBe(0);
  });

  it.each([[[]], [['sideways']], [['up', '--podman']], [['down', 'everything']]])(
    'ends with code 2 and nothing done on wrong usage: %j',
    (args) => {
      const { stdout, status } = engine(...args);
      expect({ stdout, status, made: existsSync(engines) }).toEqual({ stdout: '', status: 2, made: false });
    },
  );

  it('tells that nothing runs, and what would stand in for mongod', () => {
    const { stdout, status } = engine('status');
    expect(stdout.split('\n').map((line) => line.split(/ {2,}/))).toEqual([
      [
        'MongoDB',
        'does not run',
        "SecantusDB 0.7.0b3 (WiredTiger behind MongoDB's wire protocol), standing in for mongod",
      ],
      ['Redis', 'does not run'],
      ['Kafka', 'does not run'],
      [''],
    ]);
    expect(status).toBe(1);
  });

  it('names all that is missing and its packages in one sentence', () => {
    const { stdout, stderr, status } = engine('up');
    expect(stderr).toBe(
      'java, redis-server, strace, mvn and python3 with venv are missing: install the Debian packages default-jre-headless, redis-server, strace, maven and python3-venv\n',
    );
    expect({ stdout, status }).toEqual({ stdout: '', status: 1 });
  });

  it('names Java alone where only that is missing', () => {
    for (const program of ['redis-server', 'strace', 'mvn', 'python3']) put(program, 'exit 0');
    expect(engine('up').stderr).toBe('java is missing: install the Debian package default-jre-headless\n');
  });

  it('takes no failed installation for one', () => {
    put('java', 'exit 0');
    put('mvn', 'echo "[ERROR] Could not resolve" >&2; exit 1');
    put('python3', '[ "$1" = -c ] || { echo "no space left" >&2; exit 1; }');
    const first = engine('up');
    expect(first.stderr).toContain('mvn failed: [ERROR] Could not resolve\n');
    expect(first.status).toBe(1);
    expect(engine('up').stderr).toContain('installing Kafka 4.3.0 (Maven Central)\n');
  });

  it('says in one sentence that no Docker engine answers', () => {
    put('docker', 'exit 1');
    const { stderr, status } = engine('up', '--docker');
    expect({ stderr, status }).toEqual({
      stderr: 'No Docker engine answers (docker info); npm run engines -- up does without\n',
      status: 1,
    });
  });

  /** A Docker whose `compose up` does this; what of the composition it was told to do. */
  function putDocker(up: string): () => string[] {
    const told = join(folder, 'docker-was-told');
    writeFileSync(told, '');
    put('docker', `echo "$*" >> '${told}'\ncase "$*" in *" up "*) ${up};; esac`);
    return () =>
      readFileSync(told, 'utf8')
        .split('\n')
        .flatMap((line) => /compose\.yaml (up|down)\b/.exec(line)?.[1] ?? []);
  }
  const REFUSED = 'The composition of up --docker runs; npm run engines -- down ends it\n';

  it('starts the composition, prints its settings, starts no other servers beside it, and ends it', () => {
    const told = putDocker('exit 0');
    const { stdout, status } = engine('up', '--docker');
    expect(stdout).toBe(
      "export MONGODB_URL='mongodb://127.0.0.1:27017/?replicaSet=rs0'\nexport REDIS_URL='redis://127.0.0.1:6379'\nexport KAFKA_BROKERS='127.0.0.1:9092'\n",
    );
    expect(status).toBe(0);
    expect(engine('up')).toEqual({ stdout: '', stderr: REFUSED, status: 1 });
    expect(engine('down').status).toBe(0);
    expect(told()).toEqual(['up', 'down']);
    expect(engine('up').stderr).toContain('installing Kafka');
  });

  it('ends what of a composition has started when the rest does not, and holds it against nobody', () => {
    const told = putDocker('echo "no space left" >&2; exit 1');
    const { stdout, stderr, status } = engine('up', '--docker');
    expect({ stdout, status, last: stderr.trim().split('\n').at(-1) }).toEqual({
      stdout: '',
      status: 1,
      last: 'docker compose up failed: no space left',
    });
    expect(told()).toEqual(['up', 'down']);
    expect(engine('up').stderr).toContain('installing Kafka');
  });

  it('keeps a composition that runs when another up --docker fails', () => {
    putDocker('exit 0');
    engine('up', '--docker');
    const told = putDocker('exit 1');
    expect(engine('up', '--docker').status).toBe(1);
    expect(told()).toEqual(['up']);
    expect(engine('up').stderr).toBe(REFUSED);
    expect(engine('down').status).toBe(0);
    expect(told()).toEqual(['up', 'down']);
  });

  it('ends no process that took over the id of one of its servers, and forgets it', async () => {
    const stranger = spawn(process.execPath, ['-e', 'setInterval(() => undefined, 1000)'], { stdio: 'ignore' });
    const command = ['redis-server', '--port', '20000', '--dir', join(engines, 'data/redis')];
    writeFileSync(
      join(engines, 'state.json'),
      JSON.stringify({ servers: { redis: { port: 20_000, process: { pid: stranger.pid, command } } } }),
    );
    const { stderr, status } = engine('down', '--purge');
    expect(stderr).toContain('Redis does not run\n');
    expect(status).toBe(0);
    expect(JSON.parse(readFileSync(join(engines, 'state.json'), 'utf8'))).toEqual({
      servers: { redis: { port: 20_000 } },
    });
    stranger.kill('SIGKILL');
    expect(await once(stranger, 'exit')).toEqual([null, 'SIGKILL']);
  });
});
