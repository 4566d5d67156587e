import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join, normalize } from 'node:path';
import { allMethodOptions, methodOptionsOf } from 'platform/rpc/method-options.ts';
import { declaredMethods, PROTO_ROOT, protoFiles } from 'platform/rpc/protos.ts';
import { AUDIT_ACTIONS } from '../admin/src/audit-actions.ts';
import { circles } from './support/circles.ts';

const ROOT = join(import.meta.dirname, '..');
/** Prettier's lines; a table of cases is longer than a rule. */
const MAX_LINES = { source: 300, test: 450 };
const SERVICES = ['auth', 'agents', 'memory', 'credits'];
const FOLDERS = [
  'platform',
  ...SERVICES.map((name) => `services/${name}`),
  'gateway',
  'admin',
  'launcher',
  'dev-servers',
  'test',
  'bench',
  'tools/k8s',
  'tools/repeat-failed',
  'tools/mutants',
];

const files = FOLDERS.flatMap((folder) =>
  readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts') && !file.includes('node_modules'))
    .map((file) => `${folder}/${file}`),
);
const sources = files.filter((file) => file.includes('/src/'));
const textOf = (file: string): string => readFileSync(join(ROOT, file), 'utf8');
const importsOf = (file: string): string[] =>
  [...textOf(file).matchAll(/^(?:import|export)\b[^'"]*?from '([^']+)'/gms)].map((match) => match[1] as string);
/** Path from the root of the repository, or the name of a package's file. */
function resolved(file: string, specifier: string): string {
  if (specifier.startsWith('.')) return normalize(join(dirname(file), specifier));
  return specifier.startsWith('platform/') ? specifier.replace('platform/', 'platform/src/') : specifier;
}
const kebabCase = (name: string): string => name.replace(/(?<!^)([A-Z])/g, '-$1').toLowerCase();

const EVENT_TYPE_OR_ACTION =
  /'((?:[a-z_]+\.){2,}v1|(?:organization|user|server_token|agent|memory_type|memory_object|credits|request)\.[a-z_]+)'/g;

/** What each room of platform may import. */
const ROOMS: Readonly<Record<string, readonly string[]>> = {
  core: [],
  telemetry: ['core'],
  json: ['core'],
  store: ['core', 'telemetry'],
  patterns: [],
  'json-schema': ['core', 'patterns'],
  jobs: ['core', 'store', 'telemetry'],
  rpc: ['core', 'telemetry'],
  events: ['core', 'jobs', 'store', 'telemetry'],
  service: ['core', 'events', 'jobs', 'rpc', 'store', 'telemetry'],
};
/** Beside main, config, deps, service and events. */
const OF_ONE_SERVICE: readonly string[] = ['services/auth/src/tiers.ts', 'services/memory/src/request-members.ts'];

describe('the architecture', () => {
  it('keeps files small enough for one idea', () => {
    expect(
      files.filter((file) => textOf(file).split('\n').length > MAX_LINES[file.includes('/src/') ? 'source' : 'test']),
    ).toEqual([]);
  });

  it('has no file that is named for nothing in particular', () => {
    expect(files.filter((file) => /(^|\/)(utils?|helpers?|types|constants|common|misc|index)\.ts$/.test(file))).toEqual(
      [],
    );
  });

  it('reads process.env in main.ts alone, and in what only tests use', () => {
    const mayRead = (file: string): boolean =>
      file.endsWith('/src/main.ts') || file === 'platform/src/service/testing.ts';
    expect(sources.filter((file) => !mayRead(file) && /process\.env\b/.test(textOf(file)))).toEqual([]);
  });

  it('imports one way: proto <- platform <- services, gateway, admin, launcher', () => {
    const wrong = sources
      .flatMap((file) => importsOf(file).map((specifier) => ({ file, target: resolved(file, specifier) })))
      .filter(({ file, target }) => {
        const own = FOLDERS.find((folder) => file.startsWith(`${folder}/`)) as string;
        if (target.startsWith('platform/') || target.startsWith('proto/')) return false;
        const inHouse = FOLDERS.some((folder) => target.startsWith(`${folder}/`));
        return inHouse && !target.startsWith(`${own}/`);
      });
    expect(wrong).toEqual([]);
  });

  it('lets the rooms of platform import one way', () => {
    const roomOf = (file: string) => file.split('/')[2] as string;
    const arrows = sources
      .filter((file) => file.startsWith('platform/src/'))
      .flatMap((file) => importsOf(file).map((specifier) => [roomOf(file), resolved(file, specifier)] as const))
      .filter(([, target]) => target.startsWith('platform/src/'))
      .map(([from, target]) => [from, roomOf(target)] as const)
      .filter(([from, to]) => from !== to);
    expect(arrows.filter(([from, to]) => !ROOMS[from]?.includes(to))).toEqual([]);
    expect(readdirSync(join(ROOT, 'platform/src')).sort()).toEqual(Object.keys(ROOMS).sort());
  });

  it('has no circle of imports', () => {
    const known = new Set(sources);
    const targets = (file: string) =>
      importsOf(file)
        .map((specifier) => resolved(file, specifier))
        .filter((target) => known.has(target));
    expect(circles(new Map(sources.map((file) => [file, targets(file)])))).toEqual([]);
  });

  it("lets a noun import another noun's rules and stores, never its RPCs", () => {
    const rpcs = new Set([...allMethodOptions().keys()].map((path) => kebabCase(path.split('/')[2] as string)));
    const nounOf = (file: string) => file.split('/').slice(0, 4).join('/');
    const wrong = sources
      .filter((file) => /^services\/\w+\/src\/[\w-]+\//.test(file))
      .flatMap((file) => importsOf(file).map((specifier) => ({ file, target: resolved(file, specifier) })))
      .filter(({ file, target }) => target.startsWith('services/') && nounOf(file) !== nounOf(target))
      .filter(({ target }) => rpcs.has(basename(target, '.ts')));
    expect(wrong).toEqual([]);
  });

  it('lets rules.ts import errors, rules and generated types alone', () => {
    const allowed =
      /^(platform\/src\/(core\/(errors|ids|principal|canonical-json|parse-json|clock)|json\/strict-text|json-schema\/schema)\.ts|proto\/.*|node:(crypto|zlib))$|\/rules\.ts$|tiers\.ts$/;
    const wrong = sources
      .filter((file) => file.endsWith('/rules.ts'))
      .flatMap((file) =>
        importsOf(file)
          .map((specifier) => resolved(file, specifier))
          .filter((target) => !allowed.test(target))
          .map((target) => `${file} -> ${target}`),
      );
    expect(wrong).toEqual([]);
  });

  it('gives every RPC one handler file and one test file named like it', () => {
    const missing = [...allMethodOptions().keys()].flatMap((path) => {
      const [, service, rpc] = /^\/(\w+)\.v1\.\w+\/(\w+)$/.exec(path) as unknown as [string, string, string];
      const folder = service === 'platform' ? 'platform' : `services/${service}`;
      const name = kebabCase(rpc);
      const handler =
        service === 'platform' ||
        sources.some((file) => file.startsWith(`${folder}/src/`) && file.endsWith(`/${name}.ts`));
      const test =
        service === 'platform' ||
        files.some((file) => file.startsWith(`${folder}/test/`) && file.endsWith(`/${name}.test.ts`));
      return [...(handler ? [] : [`${folder}: no ${name}.ts`]), ...(test ? [] : [`${folder}: no ${name}.test.ts`])];
    });
    expect(missing).toEqual([]);
  });

  it('keeps the names of RPCs out of the gateway', () => {
    const names = [...allMethodOptions().keys()]
      .map((path) => path.split('/')[2] as string)
      // what auth does for the gateway itself, and for no client
      .filter((name) => !['Authenticate', 'ShareRates', 'RecordDenials'].includes(name));
    const found = sources
      .filter((file) => file.startsWith('gateway/'))
      .flatMap((file) =>
        names
          .filter((name) =>
            new RegExp(`\\b${name}\\b|\\.${name[0]?.toLowerCase()}${name.slice(1)}\\(`).test(textOf(file)),
          )
          .map((name) => `${file}: ${name}`),
      );
    expect(found).toEqual([]);
  });

  it('declares who may call every RPC', () => {
    expect(
      [...allMethodOptions()]
        .filter(([, { principals, callers }]) => principals.length === 0 || callers.length === 0)
        .map(([path]) => path),
    ).toEqual([]);
  });

  it('streams the requests only of methods that stream their replies: no others are served', () => {
    const clientStreaming = declaredMethods().filter(
      ({ method: { requestStream, responseStream } }) => requestStream && !responseStream,
    );
    expect(clientStreaming.map(({ path }) => path)).toEqual([]);
  });

  it('gives streaming methods only routes that a client may ask for again: it connects anew by itself', () => {
    type Rules = Record<string, object | undefined>;
    const routed = declaredMethods().filter(({ options }) => (options as Rules)['(google.api.http)']);
    expect(routed.length).toBeGreaterThan(10);
    const mayGoOn = ({ path, options, method: { requestStream } }: (typeof routed)[number]): boolean => {
      const { repeatable, public: isPublic, deadlineMs } = methodOptionsOf(path);
      const isGet = 'get' in (options as Rules)['(google.api.http)']!;
      return isGet && repeatable && !requestStream && !isPublic && deadlineMs >= 60_000;
    };
    const streaming = routed.filter(({ method: { requestStream, responseStream } }) => requestStream || responseStream);
    expect(streaming.filter((method) => !mayGoOn(method)).map(({ path }) => path)).toEqual([]);
  });

  it('lets only these files look across organizations', () => {
    const calls = /\b(platformStore|platformLedger)\.\w+/;
    expect(sources.filter((file) => calls.test(textOf(file))).sort()).toEqual(ACROSS_ORGANIZATIONS.toSorted());
  });

  it('hands the store that looks across organizations to wiring, jobs and these alone', () => {
    const wiring = /\/(deps|service)\.ts$|\/jobs\/[\w-]+\.ts$/;
    const named = sources.filter(
      (file) =>
        file.startsWith('services/') &&
        !wiring.test(file) &&
        /\b(platformStore|PlatformStore|platformLedger|PlatformLedger)\b/.test(textOf(file)),
    );
    expect(named.filter((file) => !ACROSS_ORGANIZATIONS.includes(file)).sort()).toEqual(NAME_IT_ONLY.toSorted());
  });

  it('gives every service the same first files', () => {
    const missing = SERVICES.flatMap((name) =>
      [
        'src/main.ts',
        'src/config.ts',
        'src/deps.ts',
        'src/service.ts',
        'src/events.ts',
        'test/fixture.ts',
        'README.md',
      ].map((file) => `services/${name}/${file}`),
    ).filter((file) => !existsSync(join(ROOT, file)));
    expect(missing).toEqual([]);
  });

  it('lets every service have the same files at its root', () => {
    const roots = SERVICES.flatMap((name) =>
      sources.filter((file) => new RegExp(`^services/${name}/src/[\\w-]+\\.ts$`).test(file)),
    );
    const common = /\/(main|config|deps|service|events)\.ts$/;
    expect(roots.filter((file) => !common.test(file)).sort()).toEqual(OF_ONE_SERVICE);
  });

  it('names a setting once, unless it is of all services', () => {
    const declared = sources
      .filter((file) => /\/config\.ts$/.test(file) || file.startsWith('platform/src/'))
      .flatMap((file) => [...textOf(file).matchAll(/^ {2}([A-Z][A-Z_]+): (?:integer|text|choice|path)\(/gm)])
      .map((match) => match[1] as string);
    expect(declared.filter((name, index) => declared.indexOf(name) !== index)).toEqual([]);
    expect(declared.length).toBeGreaterThan(40);
  });

  it('keeps comments within 120 columns', () => {
    const long = files.flatMap((file) =>
      textOf(file)
        .split('\n')
        .filter((line) => /^\s*(\/\/|\*|\/\*)/.test(line) && line.length > 120)
        .map((line) => `${file}: ${line}`),
    );
    expect(long).toEqual([]);
  });

  it('lets each workspace name the packages that it imports, and no other', () => {
    const workspaces = FOLDERS.filter((folder) => existsSync(join(ROOT, folder, 'package.json')));
    const differing = workspaces.filter((folder) => {
      const { name, dependencies = {} } = JSON.parse(textOf(`${folder}/package.json`)) as {
        name: string;
        dependencies?: Record<string, string>;
      };
      const imported = sources
        .filter((file) => file.startsWith(`${folder}/src/`))
        .flatMap((file) => [
          ...textOf(file).matchAll(/(?:from |^import |import\(|require\(|resolve\(|folderOf\()'([^'.][^']*)'/gm),
        ])
        .map((match) =>
          (match[1] as string)
            .split('/')
            .slice(0, match[1]!.startsWith('@') ? 2 : 1)
            .join('/'),
        )
        .filter((imported) => !imported.startsWith('node:') && imported !== name);
      return [...new Set(imported)].sort().join() !== Object.keys(dependencies).sort().join();
    });
    expect(differing).toEqual([]);
  });

  it('describes every event type and every audit action in docs/events.md', () => {
    const catalogue = textOf('docs/events.md');
    const named = sources
      .filter((file) => file.startsWith('services/') || file.startsWith('platform/src/events/'))
      .flatMap((file) => [...textOf(file).matchAll(EVENT_TYPE_OR_ACTION)].map((match) => match[1] as string));
    expect([...new Set(named)].filter((name) => !catalogue.includes(`\`${name}\``))).toEqual([]);
    const types = [...catalogue.matchAll(/`([a-z]+(?:\.[a-z]+)+\.v1)`/g)].map((match) => match[1] as string);
    expect(types.filter((type) => !named.includes(type))).toEqual([]);
    const actions = [...catalogue.matchAll(/^\| (`[a-z_]+\.[a-z_]+`.*?) \|/gm)].flatMap(([, row]) =>
      [...row!.matchAll(/`([a-z_]+\.[a-z_]+)`/g)].map(([, action]) => action as string),
    );
    expect([...AUDIT_ACTIONS].sort()).toEqual(actions.sort());
  });

  it('lists every decision by its title in docs/adr/README.md', () => {
    const pages = readdirSync(join(ROOT, 'docs/adr')).filter((file) => file !== 'README.md');
    const titles = pages.map((file) => `[${/^# (.*)/.exec(textOf(`docs/adr/${file}`))?.[1]}](${file})`);
    const listed = [...textOf('docs/adr/README.md').matchAll(/^- (\[.*?\]\(.*?\))/gm)].map(
      ([, link]) => link as string,
    );
    expect(listed.sort()).toEqual(titles.sort());
  });

  it('leaves nothing unfinished or silenced in the sources', () => {
    expect(
      files.filter(
        (file) =>
          !file.endsWith('architecture.test.ts') &&
          /\b(TODO|FIXME|XXX)\b|@ts-(ignore|nocheck|expect-error)|\bas any\b|\b(it|test|describe)\.(skip|only|todo)\b/.test(
            textOf(file),
          ),
      ),
    ).toEqual([]);
  });

  it('knows every proto that it routes', () => {
    expect(protoFiles().map((file) => existsSync(join(PROTO_ROOT, file)))).not.toContain(false);
  });
});

/** The closed list of files that call PlatformStore, or the ledger across organizations. */
const ACROSS_ORGANIZATIONS: string[] = [
  // work of every service: outbox, leases, denials
  'platform/src/events/relay.ts',
  'platform/src/jobs/count-bytes.ts',
  'platform/src/jobs/jobs.ts',
  'platform/src/jobs/lease.ts',
  'platform/src/events/denials.ts',
  'platform/src/service/diagnose.ts',
  'platform/src/service/metrics.ts',
  'platform/src/service/run.ts',
  // the store's time for leases; tokens by hash; runs of dead processes; settled runs in one batch; what is past its
  // retention; secrets under older master keys
  'services/agents/src/deps.ts',
  'services/agents/src/callback-tokens/store.ts',
  'services/agents/src/jobs/reaper.ts',
  'services/agents/src/jobs/reseal.ts',
  'services/agents/src/jobs/retention.ts',
  'services/agents/src/jobs/settled.ts',
  // what is there before an organization is known: organizations themselves, tokens by hash, users by e-mail
  'services/auth/src/audit/store.ts',
  'services/auth/src/organizations/store.ts',
  'services/auth/src/authentication/jwt-lookup.ts',
  'services/auth/src/authentication/token-lookup.ts',
  'services/auth/src/grants/store.ts',
  'services/auth/src/signing-keys/store.ts',
  'services/auth/src/users/store.ts',
  'services/credits/src/jobs/relay.ts',
  'services/credits/src/jobs/sweeper.ts',
  'services/credits/src/ledger/checks.ts',
  'services/credits/src/ledger/metrics.ts',
  // the store's time for leases; work for types whose process has died
  'services/memory/src/deps.ts',
  'services/memory/src/jobs/type-changes.ts',
  // the one location of the ledger
  'services/credits/src/ledger/location.ts',
  // organizations whose rows are mirrored and not published yet
  'services/credits/src/ledger/redis/mirror.ts',
];
/** These declare the port or say that they do without it. */
const NAME_IT_ONLY: string[] = [
  'services/credits/src/ledger/redis/ledger.ts',
  'services/credits/src/ledger/sqlite/ledger.ts',
  'services/credits/src/ledger/ledger.ts',
];
