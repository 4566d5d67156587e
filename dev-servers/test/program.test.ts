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

/** Runs the command with a PATH that has only the programs of the test. */
function runCommand(...args: string[]) {
  const { stdout, stderr, status } = spawnSync(process.execPath, [MAIN, ...args], {
    env: { PATH: programs, ENGINES_FOLDER: engines },
    encoding: 'utf8',
  });
  return { stdout, stderr, status };
}

function putProgram(program: string, script: string): void {
  writeFileSync(join(programs, program), `#!/bin/sh\n${script}\n`);
  chmodSync(join(programs, program), 0o755);
}

describe('npm run engines', () => {
  it('prints its help', () => {
    const { stdout, status } = runCommand('--help');
    expect(stdout).toMatch(/up .*\n[^]*down .*\n[^]*status[^]*eval "\$\(npm run -s engines -- up\)"/);
    expect(status).toBe(0);
  });

  it.each([[[]], [['sideways']], [['up', '--podman']], [['down', 'everything']]])(
    'exits with code 2 on wrong usage and does nothing: %j',
    (args) => {
      const { stdout, status } = runCommand(...args);
      expect({ stdout, status, made: existsSync(engines) }).toEqual({ stdout: '', status: 2, made: false });
    },
  );

  it('status says that nothing runs, and which server replaces mongod', () => {
    const { stdout, status } = runCommand('status');
    expect(stdout.split('\n').map((line) => line.split(/ {2,}/))).toEqual([
      [
        'MongoDB',
        'is not running',
        "SecantusDB 0.7.0b3 (WiredTiger behind MongoDB's wire protocol), standing in for mongod",
      ],
      ['Redis', 'is not running'],
      ['Kafka', 'is not running'],
      [''],
    ]);
    expect(status).toBe(1);
  });

  it('lists all missing programs and their packages in one sentence', () => {
    const { stdout, stderr, status } = runCommand('up');
    expect(stderr).toBe(
      'java, redis-server, strace, mvn and python3 with venv are missing: install the Debian packages default-jre-headless, redis-server, strace, maven and python3-venv\n',
    );
    expect({ stdout, status }).toEqual({ stdout: '', status: 1 });
  });

  it('lists only Java if only Java is missing', () => {
    for (const program of ['redis-server', 'strace', 'mvn', 'python3']) putProgram(program, 'exit 0');
    expect(runCommand('up').stderr).toBe('java is missing: install the Debian package default-jre-headless\n');
  });

  it('installs again after an installation that failed', () => {
    putProgram('java', 'exit 0');
    putProgram('mvn', 'echo "[ERROR] Could not resolve" >&2; exit 1');
    putProgram('python3', '[ "$1" = -c ] || { echo "no space left" >&2; exit 1; }');
    const first = runCommand('up');
    expect(first.stderr).toContain('mvn failed: [ERROR] Could not resolve\n');
    expect(first.status).toBe(1);
    expect(runCommand('up').stderr).toContain('installing Kafka 4.3.0 (Maven Central)\n');
  });

  it('says in one sentence that Docker does not answer', () => {
    putProgram('docker', 'exit 1');
    const { stderr, status } = runCommand('up', '--docker');
    expect({ stderr, status }).toEqual({
      stderr: 'Docker does not answer (docker info); npm run engines -- up works without Docker\n',
      status: 1,
    });
  });

  /** Puts a docker program on the PATH whose `compose up` runs a script. Returns the `up` and `down` calls so far. */
  function putDocker(up: string): () => string[] {
    const calls = join(folder, 'docker-calls');
    writeFileSync(calls, '');
    putProgram('docker', `echo "$*" >> '${calls}'\ncase "$*" in *" up "*) ${up};; esac`);
    return () =>
      readFileSync(calls, 'utf8')
        .split('\n')
        .flatMap((line) => /compose\.yaml (up|down)\b/.exec(line)?.[1] ?? []);
  }
  const DOCKER_RUNS = 'The servers of up --docker are running; npm run engines -- down stops them\n';

  it('starts deploy/compose.yaml, prints its settings, starts no other servers meanwhile, and stops it', () => {
    const calls = putDocker('exit 0');
    const { stdout, status } = runCommand('up', '--docker');
    expect(stdout).toBe(
      "export MONGODB_URL='mongodb://127.0.0.1:27017/?replicaSet=rs0'\nexport REDIS_URL='redis://127.0.0.1:6379'\nexport KAFKA_BROKERS='127.0.0.1:9092'\n",
    );
    expect(status).toBe(0);
    expect(runCommand('up')).toEqual({ stdout: '', stderr: DOCKER_RUNS, status: 1 });
    expect(runCommand('down').status).toBe(0);
    expect(calls()).toEqual(['up', 'down']);
    expect(runCommand('up').stderr).toContain('installing Kafka');
  });

  it('stops deploy/compose.yaml if it starts only in part, and can then start the other servers', () => {
    const calls = putDocker('echo "no space left" >&2; exit 1');
    const { stdout, stderr, status } = runCommand('up', '--docker');
    expect({ stdout, status, last: stderr.trim().split('\n').at(-1) }).toEqual({
      stdout: '',
      status: 1,
      last: 'docker compose up failed: no space left',
    });
    expect(calls()).toEqual(['up', 'down']);
    expect(runCommand('up').stderr).toContain('installing Kafka');
  });

  it('does not stop a running deploy/compose.yaml when another up --docker fails', () => {
    putDocker('exit 0');
    runCommand('up', '--docker');
    const calls = putDocker('exit 1');
    expect(runCommand('up', '--docker').status).toBe(1);
    expect(calls()).toEqual(['up']);
    expect(runCommand('up').stderr).toBe(DOCKER_RUNS);
    expect(runCommand('down').status).toBe(0);
    expect(calls()).toEqual(['up', 'down']);
  });

  it('does not kill a process that has got the id of one of its servers, and forgets the id', async () => {
    const stranger = spawn(process.execPath, ['-e', 'setInterval(() => undefined, 1000)'], { stdio: 'ignore' });
    const command = ['redis-server', '--port', '20000', '--dir', join(engines, 'data/redis')];
    writeFileSync(
      join(engines, 'state.json'),
      JSON.stringify({ servers: { redis: { port: 20_000, process: { pid: stranger.pid, command } } } }),
    );
    const { stderr, status } = runCommand('down', '--purge');
    expect(stderr).toContain('Redis is not running\n');
    expect(status).toBe(0);
    expect(JSON.parse(readFileSync(join(engines, 'state.json'), 'utf8'))).toEqual({
      servers: { redis: { port: 20_000 } },
    });
    stranger.kill('SIGKILL');
    expect(await once(stranger, 'exit')).toEqual([null, 'SIGKILL']);
  });
});
