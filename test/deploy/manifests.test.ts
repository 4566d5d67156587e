import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { readConfig } from 'platform/core/config.ts';
import { settingOf } from 'platform/core/processes.ts';
import { commonConfig } from 'platform/service/process.ts';
import { makeProgram } from '../../admin/src/program.ts';
import { heapBounds, heapConfig, heapFlags } from '../../launcher/src/heap.ts';
import { isPublic } from '../../services/agents/src/runtimes/network/addresses.ts';
import { containersOf, type Document } from '../../tools/k8s/src/render.ts';
import { REPOSITORY } from '../support/stack.ts';
import { expectedArrows, outside } from './network-rules.ts';
import { PROGRAMS } from './programs.ts';
import { referencesIn } from './reference-rules.ts';
import { faultsOf, overlay, OVERLAYS, SUPPLIED } from './rendered.ts';

describe('the manifests of deploy/k8s', () => {
  it('have an overlay for a laptop and one for production', () => {
    expect(OVERLAYS.sort()).toEqual(['local', 'production']);
  });

  it.each(OVERLAYS)('agree with what the programs declare: %s', (name) => {
    expect(faultsOf(overlay(name), name === 'production' ? SUPPLIED : [])).toEqual([]);
  });

  it('let exactly those speak that the programs declare, and nobody else', () => {
    // what it means, for whoever reads it; the rule derives it from `calls`
    expect(expectedArrows(overlay('local'))).toEqual(
      expect.arrayContaining(['gateway -> auth', 'agents -> credits', 'memory -> mongodb', 'gateway -> redis']),
    );
    expect(outside(overlay('local'), 'memory')).toEqual([]);
  });

  it('let agents reach public addresses alone', () => {
    const networks = outside(overlay('production'), 'agents');
    expect(networks.map(({ cidr }) => cidr)).toEqual(['0.0.0.0/0', '2000::/3']);
    const excepted = networks.flatMap(({ except }) => except);
    // the first address of each network that is excepted is one that the program refuses, too
    expect(excepted.filter((network) => isPublic(network.split('/')[0] as string))).toEqual([]);
    for (const metadata of [
      '169.254.0.0/16',
      '10.0.0.0/8',
      '172.16.0.0/12',
      '192.168.0.0/16',
      '100.64.0.0/10',
      '127.0.0.0/8',
    ])
      expect(excepted).toContain(metadata);
  });

  it('name images of production by their digest', () => {
    const images = overlay('production').flatMap(containersOf);
    expect(images.filter(({ image }) => !/^[\w./-]+@sha256:[\da-f]{64}$/.test(image as string))).toEqual([]);
  });

  it.each(OVERLAYS)('give each program the heap that the launcher gives it: %s', (name) => {
    const heap = readConfig(heapConfig, {});
    const dockerfile = readFileSync(join(REPOSITORY, 'deploy/Dockerfile'), 'utf8');
    const ofImage = /NODE_OPTIONS="(.*)"/.exec(dockerfile)![1];
    const [growth] = /--heap-growing-percent=\d+/.exec(dockerfile)!;
    expect(heapFlags(heap, 'gateway')).toContain(growth);
    for (const program of PROGRAMS) {
      const container = overlay(name)
        .flatMap(containersOf)
        .find((each) => each.name === program.name)!;
      const own = (container.env as Document[]).find((each) => each.name === 'NODE_OPTIONS')?.value as
        string | undefined;
      expect([program.name, own ?? ofImage]).toEqual([program.name, heapBounds(heap, program.name).join(' ')]);
    }
  });

  it.each(OVERLAYS)('run commands that the admin command line has: %s', (name) => {
    const { program } = makeProgram({}, {});
    const jobs = overlay(name)
      .flatMap(containersOf)
      .filter((each) => each.name === 'admin');
    expect(jobs.length).toBeGreaterThan(0);
    for (const { args, env } of jobs) {
      const [option, operator, ...words] = args as string[];
      expect([option, operator]).toEqual(['--operator', 'cluster']);
      const [noun, verb] = words;
      const command = program.commands.find((each) => each.name() === noun);
      const known = command?.commands.length ? command.commands.some((each) => each.name() === verb) : Boolean(command);
      expect({ words, known }).toEqual({ words, known: true });
      const settings = [
        ...Object.keys(commonConfig('admin')),
        ...PROGRAMS.map((each) => settingOf(each.name, 'ADDRESS')),
      ];
      expect((env as Document[]).filter((each) => !settings.includes(each.name as string))).toEqual([]);
    }
  });

  it('ask for no secret in production that nobody needs', () => {
    const needed = referencesIn(overlay('production')).map(({ name }) => name);
    expect(SUPPLIED.filter((name) => !needed.includes(name) && name !== 'api-tls')).toEqual([]);
    expect(SUPPLIED.length).toBeGreaterThan(5);
  });
});
