import { containersOf, type Document } from '../../tools/k8s/src/render.ts';
import { faultsOfNetwork } from './network-rules.ts';
import { PROGRAMS } from './programs.ts';
import { faultsOf, overlay, SUPPLIED } from './rendered.ts';

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
      change: dropEnv('AUTH_METRICS_LISTEN'),
      fault: 'auth is not scraped where it tells its metrics',
    },
    {
      of: 'Deployment memory',
      change: (document) => (document.spec.template.metadata.annotations['prometheus.io/port'] = '9090'),
      fault: 'memory is not scraped where it tells its metrics',
    },
    {
      of: 'Deployment memory',
      change: setEnv('MEMORY_METRICS_LISTEN', '0.0.0.0:9465'),
      fault: /^memory listens at .*9465, and its ports are/,
    },
    {
      of: 'NetworkPolicy metrics',
      change: ({ spec }) => (spec.ingress[0].ports[0].port = 'http'),
      fault: 'networking.k8s.io/v1 NetworkPolicy metrics names the port http, which its pods do not have',
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
      change: dropEnv('KEEP_IDLE_MS'),
      fault: 'gateway closes connections on which a request may be on its way',
    },
    {
      of: 'Deployment gateway',
      change: setEnv('DRAIN_MS', '305000'),
      fault: 'gateway stops before the longest run ends',
    },
    {
      of: 'Deployment gateway',
      change: setEnv('LISTEN_WHILE_UNREADY_MS', '0'),
      fault: 'gateway takes no connections while proxies do not know that it stops',
    },
    {
      of: 'Deployment memory',
      change: (document) => (document.spec.minReadySeconds = 30),
      fault: 'memory is updated faster than its callers find new replicas',
    },
    {
      of: 'Deployment gateway',
      change: (document) => (document.spec.template.spec.terminationGracePeriodSeconds = 370),
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
