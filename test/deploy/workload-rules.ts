import { isDeepStrictEqual } from 'node:util';
import { readConfig } from 'platform/core/config.ts';
import { settingOf } from 'platform/core/processes.ts';
import { RESOLVE_MS } from 'platform/rpc/replicas.ts';
import { KEEP_ALIVE_MS } from '../../gateway/src/http/server.ts';
import { nameOf, type Document } from '../../tools/k8s/src/render.ts';
import { hasPort, ofKind, portsOf, selects, workloadsOf, type Workload } from './pods.ts';
import { PROGRAMS, requiredIn, type Declared } from './programs.ts';

/** Settings of Node and of every program beside those that it declares. */
const ALLOWED = ['NODE_OPTIONS'];
/** Longest time limit of a run (services/agents/src/definitions/definition.ts), and what its end takes. */
const LONGEST_RUN_MS = 303_000;
/** What holds runs: the client's request, and the run itself. */
const HOLD_RUNS = ['gateway', 'agents'];
/** How long proxies take to learn that a pod goes. */
const PROXIES_LEARN_MS = 10_000;
/** How long the DNS of a cluster keeps answers: CoreDNS as kubeadm sets it up. */
const DNS_KEEPS_MS = 30_000;
/** What a process takes after DRAIN_MS (platform/src/service/process.ts), and as much again for a slow node. */
const CLOSE_MS = 4_000;

/** Faults of what runs: settings, ports, probes, budgets, time to end. */
export function faultsOfWorkloads(documents: readonly Document[]): string[] {
  const workloads = workloadsOf(documents);
  return [
    ...workloads.flatMap((workload) => faultsOfPod(workload)),
    ...PROGRAMS.flatMap((declared) => {
      const own = workloads.filter(({ document, name }) => document.kind === 'Deployment' && name === declared.name);
      if (own.length !== 1) return [`${declared.name} has ${own.length} Deployments`];
      return faultsOfProgram(declared, own[0] as Workload, documents);
    }),
    ...documents.flatMap((document) => faultsOfSelectors(document, workloads)),
    ...ofKind(documents, 'HorizontalPodAutoscaler').flatMap((scaler) => faultsOfScaler(scaler, documents)),
    ...ofKind(documents, 'Ingress').flatMap((ingress) => faultsOfIngress(ingress, documents)),
  ];
}

/** Of any pod, also of an engine or a job. */
function faultsOfPod({ document, labels, spec, containers }: Workload): string[] {
  const at = nameOf(document);
  const faults: string[] = [];
  const selector = document.spec.selector as object | undefined;
  if (selector && !selects(selector, labels)) faults.push(`${at} selects other pods than its own`);
  if (spec.enableServiceLinks !== false) faults.push(`${at} gets variables of services into its environment`);
  if (spec.automountServiceAccountToken !== (labels['app.kubernetes.io/name'] === 'keys'))
    faults.push(`${at} has a token of the API server, or lacks it`);
  for (const { name, resources, securityContext } of containers) {
    if (!resources?.limits?.memory || !resources.requests?.cpu) faults.push(`${at}: ${name} has no limit of memory`);
    if (resources?.limits?.cpu) faults.push(`${at}: ${name} would be throttled`);
    if (securityContext?.readOnlyRootFilesystem !== true) faults.push(`${at}: ${name} may write into its image`);
  }
  return faults;
}

function faultsOfProgram(declared: Declared, workload: Workload, documents: readonly Document[]): string[] {
  const { name, settings, calls } = declared;
  const { spec, containers, document } = workload;
  const [container] = containers as [Document];
  const env = environmentOf(container, documents);
  const faults: string[] = [];
  for (const each of env.keys())
    if (!(each in settings) && !ALLOWED.includes(each)) faults.push(`${name} does not know the setting ${each}`);
  for (const each of requiredIn(declared)) if (!env.has(each)) faults.push(`${name} needs the setting ${each}`);
  if (env.has('EMBEDDED')) faults.push(`${name} says EMBEDDED, which its image says`);
  const known = Object.fromEntries([...env].filter(([, value]) => value !== undefined));
  try {
    readConfig(settings, known);
  } catch (error) {
    faults.push(...(error as Error).message.split('\n').map((fault) => `${name}: ${fault}`));
  }
  for (const called of calls) {
    const [host, port] = (env.get(settingOf(called, 'ADDRESS')) ?? '').split(':');
    const service = ofKind(documents, 'Service').find(({ metadata }) => metadata.name === host);
    if (!service?.spec.ports.some((each: Document) => each.port === Number(port)))
      faults.push(`${name} finds ${called} at ${host}:${port}, where no service is`);
    else if (service.spec.clusterIP !== 'None') faults.push(`${name} finds only one address of ${called}`);
  }
  const listens = (['LISTEN', 'HEALTH_LISTEN', 'METRICS_LISTEN'] as const).flatMap(
    (each) => env.get(settingOf(name, each)) ?? [],
  );
  const opened = portsOf(workload).map(({ containerPort }) => containerPort);
  if (listens.map((each) => Number(each.split(':')[1])).join() !== opened.join())
    faults.push(`${name} listens at ${listens.join(' and ')}, and its ports are ${opened.join(' and ')}`);
  faults.push(...faultsOfScrapes(name, workload, env));
  faults.push(...faultsOfProbes(declared, container, env));
  faults.push(...faultsOfEnd(name, spec, env), ...faultsOfUpdate(name, document.spec));
  const { maxUnavailable, maxSurge } = document.spec.strategy?.rollingUpdate ?? {};
  if (maxUnavailable !== 0 || !(Number(maxSurge) > 0)) faults.push(`${name} has fewer replicas during an update`);
  if (document.spec.replicas !== undefined) faults.push(`${name} sets the number that its autoscaler owns`);
  if ((spec.topologySpreadConstraints ?? []).length < 2) faults.push(`${name} is not spread over zones and nodes`);
  return faults;
}

/** Prometheus is told of the port where the program listens, or of none. */
function faultsOfScrapes(name: string, { document }: Workload, env: Map<string, string | undefined>): string[] {
  const port = env.get(settingOf(name, 'METRICS_LISTEN'))?.split(':')[1];
  const annotations = (document.spec.template.metadata.annotations ?? {}) as Record<string, string>;
  const told = Object.entries(annotations).filter(([key]) => key.startsWith('prometheus.io/'));
  const expected =
    port === undefined
      ? []
      : [
          ['scrape', 'true'],
          ['port', port],
          ['path', '/metrics'],
        ];
  return isDeepStrictEqual(
    told,
    expected.map(([key, value]) => [`prometheus.io/${key}`, value]),
  )
    ? []
    : [`${name} is not scraped where it tells its metrics`];
}

/** Values by name; undefined where a secret has it that is not here. */
function environmentOf({ env = [] }: Document, documents: readonly Document[]): Map<string, string | undefined> {
  const valueOf = ({ value, valueFrom }: Document): string | undefined => {
    if (!valueFrom) return value as string;
    const [kind, { name, key }] = Object.entries(valueFrom as Document)[0] as [string, Document];
    const holder = documents.find(
      (document) =>
        document.kind === (kind === 'configMapKeyRef' ? 'ConfigMap' : 'Secret') && document.metadata.name === name,
    );
    return (holder?.data?.[key] ?? holder?.stringData?.[key]) as string | undefined;
  };
  return new Map((env as Document[]).map((each) => [each.name as string, valueOf(each)]));
}

function faultsOfProbes(
  { name, serves }: Declared,
  container: Document,
  env: Map<string, string | undefined>,
): string[] {
  const healthPort = Number(env.get(settingOf(name, 'HEALTH_LISTEN'))?.split(':')[1]);
  const faults: string[] = [];
  for (const kind of ['startupProbe', 'livenessProbe', 'readinessProbe']) {
    const probe = container[kind] as Document | undefined;
    const isReadiness = kind === 'readinessProbe';
    if (name === 'gateway') {
      if (probe?.httpGet?.path !== (isReadiness ? '/readyz' : '/healthz') || probe?.httpGet?.port !== 'http')
        faults.push(`${name}: ${kind} asks for nothing that the gateway answers`);
    } else if (probe?.grpc?.port !== healthPort) faults.push(`${name}: ${kind} asks at another port than health`);
    else if (isReadiness ? !serves.includes(probe.grpc.service as string) : probe.grpc.service !== undefined)
      faults.push(`${name}: ${kind} names ${probe.grpc.service}, which is not served`);
  }
  return faults;
}

function faultsOfEnd(name: string, spec: Document, env: Map<string, string | undefined>): string[] {
  const ms = (setting: string): number => Number(env.get(setting) ?? 0);
  const graceMs = 1_000 * Number(spec.terminationGracePeriodSeconds);
  // on a connection that was idle, a run may begin as late as that
  const forRunsMs = ms('DRAIN_MS') - ms('KEEP_IDLE_MS');
  return [
    ...(graceMs < ms('DRAIN_MS') + CLOSE_MS ? [`${name} is killed before it has drained`] : []),
    ...(HOLD_RUNS.includes(name) && forRunsMs < LONGEST_RUN_MS ? [`${name} stops before the longest run ends`] : []),
    ...(name === 'gateway' && ms('LISTEN_WHILE_UNREADY_MS') < PROXIES_LEARN_MS
      ? ['gateway takes no connections while proxies do not know that it stops']
      : []),
    ...(name === 'gateway' && ms('KEEP_IDLE_MS') < KEEP_ALIVE_MS
      ? ['gateway closes connections on which a request may be on its way']
      : []),
  ];
}

/** While a Deployment is updated, its callers must know a new replica before an old one goes. */
const faultsOfUpdate = (name: string, { minReadySeconds = 0 }: Document): string[] =>
  name === 'gateway' || 1_000 * minReadySeconds >= RESOLVE_MS + DNS_KEEPS_MS
    ? []
    : [`${name} is updated faster than its callers find new replicas`];

/** Whoever selects pods must find some; a budget must leave some. */
function faultsOfSelectors(document: Document, workloads: readonly Workload[]): string[] {
  const { kind, spec } = document;
  const at = nameOf(document);
  if (kind === 'Service') {
    const found = workloads.filter(({ labels }) => selects({ matchLabels: spec.selector as never }, labels));
    if (found.length !== 1) return [`${at} selects the pods of ${found.length} workloads`];
    return (spec.ports as Document[])
      .filter(({ targetPort }) => !hasPort(found[0]!, targetPort as string))
      .map(({ targetPort }) => `${at} leads to the port ${targetPort}, which its pods do not have`);
  }
  if (kind !== 'PodDisruptionBudget') return [];
  const found = workloads.filter(({ labels }) => selects(spec.selector as object, labels));
  if (found.length !== 1) return [`${at} selects the pods of ${found.length} workloads`];
  return Number(spec.maxUnavailable) >= 1 ? [] : [`${at} lets no pod be evicted`];
}

function faultsOfScaler(scaler: Document, documents: readonly Document[]): string[] {
  const { scaleTargetRef, minReplicas, maxReplicas } = scaler.spec as Document;
  const target = documents.find(
    ({ kind, apiVersion, metadata }) =>
      kind === scaleTargetRef.kind && apiVersion === scaleTargetRef.apiVersion && metadata.name === scaleTargetRef.name,
  );
  if (!target) return [`${nameOf(scaler)} scales nothing`];
  const budget = ofKind(documents, 'PodDisruptionBudget').find(({ spec }) =>
    selects(spec.selector as object, workloadsOf([target])[0]!.labels),
  );
  const isLarger = Number(maxReplicas) > Number(minReplicas);
  // with one replica there is nothing to keep
  const isKept = Number(minReplicas) === 1 || Number(budget?.spec.maxUnavailable) < Number(minReplicas);
  return [
    ...(isLarger ? [] : [`${nameOf(scaler)} cannot scale`]),
    ...(isKept ? [] : [`${nameOf(scaler)} has no budget below its replicas`]),
  ];
}

function faultsOfIngress(ingress: Document, documents: readonly Document[]): string[] {
  const backends = (ingress.spec.rules as Document[]).flatMap(({ http }) => http.paths as Document[]);
  const isThere = ({ service }: Document): boolean =>
    ofKind(documents, 'Service').some(
      ({ metadata, spec }) =>
        metadata.name === service.name && spec.ports.some(({ name }: Document) => name === service.port.name),
    );
  return [
    ...(backends.every(({ backend }) => isThere(backend as Document)) ? [] : [`${nameOf(ingress)} leads nowhere`]),
    ...(ingress.spec.tls?.length > 0 ? [] : [`${nameOf(ingress)} has no TLS`]),
  ];
}
