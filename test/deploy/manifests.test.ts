import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { settingOf } from 'platform/core/processes.ts';
import { commonConfig } from 'platform/service/process.ts';
import { makeProgram } from '../../admin/src/program.ts';
import { isPublic } from '../../services/agents/src/runtimes/network/addresses.ts';
import { containersOf, render, type Document } from '../../tools/k8s/src/render.ts';
import { REPOSITORY } from '../support/stack.ts';
import { expectedArrows, faultsOfNetwork, outside } from './network-rules.ts';
import { PROGRAMS } from './programs.ts';
import { faultsOfReferences, referencesIn } from './reference-rules.ts';
import { faultsOfWorkloads } from './workload-rules.ts';

const FOLDER = join(REPOSITORY, 'deploy/k8s');
const OVERLAYS = readdirSync(join(FOLDER, 'overlays'));
const overlay = (name: string): Document[] => render(join(FOLDER, 'overlays', name));
/** The secrets that deploy/k8s/README.md asks an operator of production for. */
const SUPPLIED = [...readFileSync(join(FOLDER, 'README.md'), 'utf8').matchAll(/^\| `([\w-]+)` \|/gm)].map(
  ([, name]) => name as string,
);

const faultsOf = (documents: readonly Document[], supplied: readonly string[]): string[] => [
  ...faultsOfReferences(documents, new Set(supplied)),
  ...faultsOfWorkloads(documents),
  ...faultsOfNetwork(documents),
];

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

describe('the rules for manifests', () => {
  interface Mutant {
    of: string;
    change(document: Document): void;
    fault: string | RegExp;
  }
  const container = (document: Document): Document => containersOf(document)[0] as Document;
  const setEnv = (name: string, value: string) => (document: Document) => {
    const { env } = container(document) as { env: Document[] };
    const found = env.find((each) => each.name === name);
    if (found) found.value = value;
    else env.push({ name, value });
  };
  const dropEnv = (name: string) => (document: Document) => {
    const own = container(document);
    own.env = own.env.filter((each: Document) => each.name !== name);
  };
  const mutants: Mutant[] = [
    {
      of: 'Deployment auth',
      change: setEnv('AUTH_LISTENS', 'x'),
      fault: 'auth does not know the setting AUTH_LISTENS',
    },
    { of: 'Deployment auth', change: dropEnv('MASTER_KEY_FILE'), fault: 'auth needs the setting MASTER_KEY_FILE' },
    { of: 'Deployment memory', change: dropEnv('MONGODB_URL'), fault: 'memory needs the setting MONGODB_URL' },
    { of: 'Deployment credits', change: dropEnv('REDIS_URL'), fault: 'credits needs the setting REDIS_URL' },
    { of: 'Deployment gateway', change: dropEnv('AUTH_ADDRESS'), fault: 'gateway needs the setting AUTH_ADDRESS' },
    {
      of: 'Deployment agents',
      change: setEnv('EMBEDDED', 'allow'),
      fault: 'agents says EMBEDDED, which its image says',
    },
    { of: 'Deployment agents', change: setEnv('RUNNERS_MAX', '0'), fault: /^agents: RUNNERS_MAX must be an integer/ },
    {
      of: 'Deployment agents',
      change: setEnv('DRAIN_MS', '300000'),
      fault: 'agents stops before the longest run ends',
    },
    {
      of: 'Deployment auth',
      change: setEnv('CREDITS_ADDRESS', 'credits:1'),
      fault: /^auth finds credits at credits:1/,
    },
    {
      of: 'Deployment auth',
      change: setEnv('TLS_CA_FILE', '/ca.crt'),
      fault: /TLS_CA_FILE at \/ca.crt, where nothing/,
    },
    {
      of: 'Deployment auth',
      change: setEnv('AUTH_HEALTH_LISTEN', '0.0.0.0:1'),
      fault: 'auth: livenessProbe asks at another port than health',
    },
    {
      of: 'Deployment memory',
      change: (document) => (container(document).readinessProbe.grpc.service = 'memory.v2.MemoryService'),
      fault: 'memory: readinessProbe names memory.v2.MemoryService, which is not served',
    },
    {
      of: 'Deployment gateway',
      change: (document) => (container(document).readinessProbe.httpGet.path = '/ready'),
      fault: 'gateway: readinessProbe asks for nothing that the gateway answers',
    },
    {
      of: 'Deployment gateway',
      change: (document) => (document.spec.template.spec.terminationGracePeriodSeconds = 310),
      fault: 'gateway is killed before it has drained',
    },
    {
      of: 'Deployment credits',
      change: (document) => (document.spec.strategy.rollingUpdate.maxUnavailable = 1),
      fault: 'credits has fewer replicas during an update',
    },
    {
      of: 'Deployment credits',
      change: (document) => (container(document).securityContext.readOnlyRootFilesystem = false),
      fault: 'apps/v1 Deployment credits: credits may write into its image',
    },
    {
      of: 'Deployment credits',
      change: (document) => (document.spec.template.metadata.labels['app.kubernetes.io/name'] = 'credit'),
      fault: 'apps/v1 Deployment credits selects other pods than its own',
    },
    {
      of: 'Deployment agents',
      change: (document) => delete document.spec.template.spec.enableServiceLinks,
      fault: 'apps/v1 Deployment agents gets variables of services into its environment',
    },
    {
      of: 'Service auth',
      change: (document) => (document.spec.selector = { 'app.kubernetes.io/name': 'authentication' }),
      fault: 'v1 Service auth selects the pods of 0 workloads',
    },
    {
      of: 'Service auth',
      change: (document) => delete document.spec.clusterIP,
      fault: 'gateway finds only one address of auth',
    },
    {
      of: 'Service auth',
      change: (document) => (document.spec.ports[0].targetPort = 'http'),
      fault: 'v1 Service auth leads to the port http, which its pods do not have',
    },
    {
      of: 'PodDisruptionBudget agents',
      change: (document) => (document.spec.maxUnavailable = 3),
      fault: 'autoscaling/v2 HorizontalPodAutoscaler agents has no budget below its replicas',
    },
    {
      of: 'PodDisruptionBudget agents',
      change: (document) => (document.spec.maxUnavailable = 0),
      fault: 'policy/v1 PodDisruptionBudget agents lets no pod be evicted',
    },
    {
      of: 'HorizontalPodAutoscaler agents',
      change: (document) => (document.spec.scaleTargetRef.name = 'agent'),
      fault: 'autoscaling/v2 HorizontalPodAutoscaler agents scales nothing',
    },
    {
      of: 'Ingress gateway',
      change: (document) => (document.spec.rules[0].http.paths[0].backend.service.port.name = 'https'),
      fault: 'networking.k8s.io/v1 Ingress gateway leads nowhere',
    },
    {
      of: 'NetworkPolicy credits',
      change: ({ spec }) => spec.ingress[0].from.shift(),
      fault: /^(auth|agents) -> credits is not let in$/,
    },
    {
      of: 'NetworkPolicy auth',
      change: ({ spec }) => (spec.egress = []),
      fault: 'auth -> credits is not let out',
    },
    {
      of: 'NetworkPolicy memory',
      change: ({ spec }) => spec.ingress[0].from.push({ podSelector: {} }),
      fault: 'credits -> memory is let in, and nobody declares it',
    },
    {
      of: 'NetworkPolicy memory',
      change: ({ spec }) => delete spec.ingress[0].from,
      fault: 'networking.k8s.io/v1 NetworkPolicy memory lets everybody in',
    },
    {
      of: 'NetworkPolicy memory',
      change: ({ spec }) => (spec.ingress[0].ports[0].port = 'http'),
      fault: 'networking.k8s.io/v1 NetworkPolicy memory names the port http, which its pods do not have',
    },
    {
      of: 'NetworkPolicy default-deny',
      change: ({ spec }) => (spec.policyTypes = ['Ingress']),
      fault: 'no policy denies what no other allows',
    },
    {
      of: 'ConfigMap edge',
      change: (document) => delete document.data['trusted-proxies'],
      fault: 'apps/v1 Deployment gateway needs ConfigMap edge trusted-proxies',
    },
    {
      of: 'Certificate memory',
      change: ({ spec }) => (spec.secretName = 'memory-tls'),
      fault: 'apps/v1 Deployment memory needs Secret memory-keys',
    },
    {
      of: 'ServiceAccount memory',
      change: ({ metadata }) => (metadata.name = 'memories'),
      fault: 'apps/v1 Deployment memory runs as an account that is not there',
    },
    {
      of: 'Service memory',
      change: ({ metadata }) => delete metadata.namespace,
      fault: 'v1 Service memory is not in the namespace',
    },
  ];

  it.each(mutants)('see that $of is wrong: $fault', ({ of, change, fault }) => {
    const documents = overlay('production');
    const [kind, name] = of.split(' ');
    const mutant = documents.find((document) => document.kind === kind && document.metadata.name === name);
    change(mutant as Document);
    const expected = typeof fault === 'string' ? fault : expect.stringMatching(fault);
    expect(faultsOf(documents, SUPPLIED)).toContainEqual(expected);
  });

  it('see that a program calls one more: its policies must follow', () => {
    const programs = PROGRAMS.map((each) => (each.name === 'credits' ? { ...each, calls: ['memory'] } : each));
    expect(faultsOfNetwork(overlay('production'), programs)).toEqual([
      'credits -> memory is not let in',
      'credits -> memory is not let out',
    ]);
  });
});
