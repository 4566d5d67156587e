import { containersOf, podOf, type Document } from '../../tools/k8s/src/render.ts';

/** What makes pods: a Deployment, StatefulSet, Job or CronJob, with the labels of its pods. */
export interface Workload {
  document: Document;
  /** The label app.kubernetes.io/name, by which policies, services and budgets find its pods. */
  name: string;
  labels: Record<string, string>;
  spec: Document;
  containers: Document[];
}

export const NAME_LABEL = 'app.kubernetes.io/name';

export const workloadsOf = (documents: readonly Document[]): Workload[] =>
  documents
    .filter((document) => ['Deployment', 'StatefulSet', 'Job', 'CronJob'].includes(document.kind as string))
    .map((document) => {
      const { metadata, spec } = podOf(document) as Document;
      const labels = metadata.labels as Record<string, string>;
      return { document, name: labels[NAME_LABEL] ?? '', labels, spec, containers: containersOf(document) };
    });

export const ofKind = (documents: readonly Document[], kind: string): Document[] =>
  documents.filter((document) => document.kind === kind);

interface Selector {
  matchLabels?: Record<string, string>;
  matchExpressions?: { key: string; operator: string; values: string[] }[];
}

/** Whether a label selector takes these labels; an empty one takes all. */
export const selects = (
  { matchLabels = {}, matchExpressions = [] }: Selector,
  labels: Record<string, string>,
): boolean =>
  Object.entries(matchLabels).every(([key, value]) => labels[key] === value) &&
  matchExpressions.every(({ key, operator, values }) => {
    if (operator !== 'In') throw new Error(`The rules do not know the operator ${operator}`);
    return values.includes(labels[key] ?? '');
  });

/** The container port of this name or number, in any of the pods. */
export const portsOf = ({ containers }: Workload): { name: string; containerPort: number }[] =>
  containers.flatMap(({ ports = [] }) => ports as { name: string; containerPort: number }[]);

export const hasPort = (workload: Workload, port: string | number): boolean =>
  portsOf(workload).some(({ name, containerPort }) => name === port || containerPort === port);
