import { execFile, execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, matchesGlob } from 'node:path';
import { promisify } from 'node:util';
import { REPOSITORY } from './stack.ts';

/** A program as its image has it, laid out in a folder that stands for the root of the image. */
export interface Image {
  root: string;
  /** Where ENTRYPOINT runs. */
  workingFolder: string;
  entrypoint: string[];
  env: Record<string, string>;
  user: string;
}

interface Instruction {
  verb: string;
  rest: string;
}
export type Stage = { from: string; instructions: Instruction[] };

const run = promisify(execFile);

/** The stages of deploy/Dockerfile by their names; the last one is "image". */
export function stages(): Map<string, Stage> {
  const text = readFileSync(join(REPOSITORY, 'deploy/Dockerfile'), 'utf8');
  const found = new Map<string, Stage>();
  let stage: Stage | undefined;
  for (const line of text
    .replace(/^#.*\n/gm, '')
    .replaceAll(/\\\n\s*/g, '')
    .split('\n')) {
    const [, verb, rest] = /^([A-Z]+) (.*)$/.exec(line) ?? [];
    if (verb === undefined || rest === undefined) continue;
    if (verb !== 'FROM') stage?.instructions.push({ verb, rest });
    else {
      const [from = '', , name = 'image'] = rest.split(' ');
      found.set(name, (stage = { from, instructions: [] }));
    }
  }
  return found;
}

/**
 * Does without Docker what the Dockerfile does for one program: the same files, laid out by the same npm commands. Of
 * the stage that generates code it only takes the result, which `npm ci` has made in this repository.
 * @param service folder of its workspace
 */
export async function layOut(service: string, folder: string): Promise<Image> {
  const all = stages();
  const filled = (text: string): string => text.replaceAll(/\$\{?SERVICE\}?/g, service);
  const built: Record<string, string> = { installed: join(folder, 'installed'), generated: join(folder, 'generated') };
  for (const file of context()) copy(join(REPOSITORY, file), join(built.installed!, 'app', file));
  copy(join(REPOSITORY, 'proto'), join(built.generated!, 'app/proto'));
  for (const { verb, rest } of all.get('installed')!.instructions)
    if (verb === 'RUN')
      await run('sh', ['-c', rest], {
        cwd: join(built.installed!, 'app'),
        env: { ...process.env, SERVICE: service, NODE_OPTIONS: '', npm_config_prefer_offline: 'true' },
      });
  const root = join(folder, 'root');
  const image: Image = { root, workingFolder: '', entrypoint: [], env: {}, user: '' };
  for (const { verb, rest } of all.get('image')!.instructions) {
    const [, stage, from, to] = /^--from=(\w+) (\S+) (\S+)$/.exec(filled(rest)) ?? [];
    if (verb === 'COPY') copy(join(built[stage!]!, from!), join(root, to!));
    else if (verb === 'ENV')
      for (const [, name, quoted, plain] of rest.matchAll(/(\w+)=(?:"([^"]*)"|(\S+))/g))
        image.env[name!] = (quoted ?? plain)!;
    else if (verb === 'WORKDIR') image.workingFolder = join(root, filled(rest));
    else if (verb === 'USER') image.user = rest;
    else if (verb === 'ENTRYPOINT') image.entrypoint = JSON.parse(rest) as string[];
  }
  return image;
}

function copy(from: string, to: string): void {
  mkdirSync(dirname(to), { recursive: true });
  cpSync(from, to, { recursive: true, verbatimSymlinks: true });
}

/** The files that `COPY . .` takes: those of the repository that .dockerignore leaves. */
export function context(): string[] {
  const rules = readFileSync(join(REPOSITORY, '.dockerignore'), 'utf8')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => ({ keeps: line.startsWith('!'), pattern: line.replace(/^!/, '') }));
  // Docker's "*" is any name, also one that begins with a dot
  const matches = (file: string, pattern: string): boolean =>
    pattern === '*' || matchesGlob(file, pattern) || matchesGlob(file, `${pattern}/**`);
  const kept = (file: string): boolean => rules.findLast(({ pattern }) => matches(file, pattern))?.keeps ?? true;
  return execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', '-z'], { cwd: REPOSITORY })
    .toString()
    .split('\0')
    .filter((file) => file !== '' && existsSync(join(REPOSITORY, file)) && kept(file));
}

/** Every file below a folder, with its size and the time of its last change. */
export const filesBelow = (folder: string): { path: string; bytes: number; changedMs: number }[] =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .map((path) => ({ path, ...statsOf(path) }));

function statsOf(path: string): { bytes: number; changedMs: number } {
  const { size, mtimeMs } = statSync(path);
  return { bytes: size, changedMs: mtimeMs };
}
