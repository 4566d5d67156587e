import { containersOf, podOf, type Document } from './render.ts';

/** A mistake in our manifests that the API server's own code must see. */
interface Mutant {
  name: string;
  /** @returns the documents as text, with the mistake */
  change(documents: Document[]): string;
  refusedBecause: string;
  /** A server takes it: kubectl reads the documents before, or what is wrong lies between two of them. */
  seenByLintAlone?: true;
}

const textOf = (documents: readonly Document[]): string =>
  documents.map((document) => JSON.stringify(document)).join('\n---\n');

/** Changes the document of this kind and name, "Deployment auth". */
const changed =
  (which: string, change: (document: Document) => unknown): Mutant['change'] =>
  (documents) => {
    const [kind, name] = which.split(' ');
    change(documents.find((document) => document.kind === kind && document.metadata.name === name) as Document);
    return textOf(documents);
  };
const inContainer = (which: string, change: (container: Document) => unknown): Mutant['change'] =>
  changed(which, (document) => change(containersOf(document)[0] as Document));

export const MUTANTS: readonly Mutant[] = [
  {
    name: 'a field that is misspelled',
    change: inContainer('Deployment auth', (container) => (container.readynessProbe = container.readinessProbe)),
    refusedBecause: 'unknown field "spec.template.spec.containers[0].readynessProbe"',
  },
  {
    name: 'a field that is there twice',
    change: (documents) => textOf(documents).replace('"maxReplicas":3', '"maxReplicas":3,"maxReplicas":4'),
    refusedBecause: 'key "maxReplicas" already set in map',
    seenByLintAlone: true,
  },
  {
    name: 'a selector of other pods',
    change: changed('Deployment auth', ({ spec }) => (spec.selector.matchLabels = { app: 'auth' })),
    refusedBecause: '`selector` does not match template `labels`',
  },
  {
    name: 'a privileged container',
    change: inContainer('Deployment agents', ({ securityContext }) => {
      securityContext.privileged = true;
      securityContext.allowPrivilegeEscalation = true;
    }),
    refusedBecause: 'Deployment agents: violates PodSecurity restricted:latest: privileged',
  },
  {
    name: 'a container that keeps capabilities',
    change: inContainer('StatefulSet redis', ({ securityContext }) => delete securityContext.capabilities),
    refusedBecause: 'StatefulSet redis: violates PodSecurity restricted:latest: unrestricted capabilities',
  },
  {
    name: 'a job that runs as root',
    change: changed('CronJob keys', (job) => (podOf(job)!.spec.securityContext.runAsUser = 0)),
    refusedBecause: 'runAsUser=0',
  },
  {
    name: 'a namespace that demands nothing of its pods',
    change: changed(
      'Namespace agent-memory',
      ({ metadata }) => delete metadata.labels['pod-security.kubernetes.io/enforce'],
    ),
    refusedBecause: 'its namespace does not demand restricted pods',
    seenByLintAlone: true,
  },
  {
    name: 'an autoscaler whose maximum is below its minimum',
    change: changed('HorizontalPodAutoscaler memory', ({ spec }) => (spec.minReplicas = 5)),
    refusedBecause: 'must be greater than or equal to `minReplicas`',
  },
  {
    name: 'a budget with both bounds',
    change: changed('PodDisruptionBudget memory', ({ spec }) => (spec.minAvailable = 1)),
    refusedBecause: 'minAvailable and maxUnavailable cannot be both set',
  },
  {
    name: 'a policy of another direction',
    change: changed('NetworkPolicy memory', ({ spec }) => (spec.policyTypes = ['Ingres'])),
    refusedBecause: 'Unsupported value: "Ingres"',
  },
  {
    name: 'an exception outside of its network',
    change: changed('NetworkPolicy agents', ({ spec }) =>
      (spec.egress as Document[])
        .flatMap(({ to }) => to as Document[])
        .forEach(({ ipBlock }) => ipBlock && (ipBlock.cidr = '198.51.100.0/24')),
    ),
    refusedBecause: 'must be a strict subset of `cidr`',
  },
  {
    name: 'a probe without a port',
    change: inContainer('Deployment credits', ({ livenessProbe }) => delete livenessProbe.grpc.port),
    refusedBecause: 'livenessProbe.grpc.port',
  },
  {
    name: 'two ports of one name',
    change: inContainer('Deployment credits', ({ ports }) => (ports[1].name = 'grpc')),
    refusedBecause: 'Duplicate value: "grpc"',
  },
  {
    name: 'a version that no server has any longer',
    change: changed('Deployment credits', (document) => (document.apiVersion = 'apps/v1beta1')),
    refusedBecause: 'apps/v1beta1 is not in the list of versions that are checked',
  },
  {
    name: 'a document without a namespace',
    change: changed('Service credits', ({ metadata }) => delete metadata.namespace),
    refusedBecause: 'Service credits: it has no namespace',
    seenByLintAlone: true,
  },
];
