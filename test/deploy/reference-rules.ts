import { nameOf, type Document } from '../../tools/k8s/src/render.ts';
import { ofKind, workloadsOf } from './pods.ts';

/** Where a value or a file comes from: "Secret auth-keys tls.crt"; without a key, all of them. */
interface Reference {
  from: string;
  kind: 'Secret' | 'ConfigMap';
  name: string;
  key?: string;
}

const NAMESPACE = 'agent-memory';

/** Faults of names: of the namespace, of accounts and roles, and of secrets and config maps. */
export function faultsOfReferences(documents: readonly Document[], supplied: ReadonlySet<string>): string[] {
  const accounts = ofKind(documents, 'ServiceAccount').map(({ metadata }) => metadata.name as string);
  return [
    ...documents
      .filter(({ kind, metadata }) => (kind === 'Namespace' ? metadata.name : metadata.namespace) !== NAMESPACE)
      .map((document) => `${nameOf(document)} is not in the namespace`),
    ...workloadsOf(documents)
      .filter(
        ({ spec }) => spec.serviceAccountName !== undefined && !accounts.includes(spec.serviceAccountName as string),
      )
      .map(({ document }) => `${nameOf(document)} runs as an account that is not there`),
    ...referencesIn(documents)
      .filter((reference) => !isThere(reference, documents, supplied))
      .map(({ from, kind, name, key }) => `${from} needs ${kind} ${name} ${key ?? ''}`.trim()),
    ...workloadsOf(documents).flatMap(({ document, spec, containers }) =>
      containers.flatMap((container) => faultsOfMounts(nameOf(document), spec, container)),
    ),
  ];
}

function isThere(
  { kind, name, key }: Reference,
  documents: readonly Document[],
  supplied: ReadonlySet<string>,
): boolean {
  const holder = documents.find((document) => document.kind === kind && document.metadata.name === name);
  if (holder) return key === undefined || key in { ...holder.data, ...holder.stringData };
  return kind === 'Secret' && (supplied.has(name) || madeHere(documents).has(name));
}

/** Secrets that cert-manager or the job "keys" makes. */
const madeHere = (documents: readonly Document[]): Set<string> =>
  new Set([
    ...ofKind(documents, 'Certificate').map(({ spec }) => spec.secretName as string),
    ...ofKind(documents, 'Role').flatMap(({ rules }) =>
      (rules as Document[]).flatMap(({ resourceNames = [] }) => resourceNames as string[]),
    ),
  ]);

export function referencesIn(documents: readonly Document[]): Reference[] {
  return workloadsOf(documents).flatMap(({ document, spec, containers }) => {
    const from = nameOf(document);
    const values = containers
      .flatMap(({ env = [] }) => env as Document[])
      .flatMap(({ valueFrom }): Reference[] => {
        const { configMapKeyRef: map, secretKeyRef: secret } = (valueFrom ?? {}) as Document;
        if (map) return [{ from, kind: 'ConfigMap', name: map.name as string, key: map.key as string }];
        return secret && !secret.optional
          ? [{ from, kind: 'Secret', name: secret.name as string, key: secret.key as string }]
          : [];
      });
    const files = ((spec.volumes ?? []) as Document[]).flatMap(({ secret, configMap }): Reference[] => {
      if (secret) return [{ from, kind: 'Secret', name: secret.secretName as string }];
      return configMap ? [{ from, kind: 'ConfigMap', name: configMap.name as string }] : [];
    });
    return [...values, ...files];
  });
}

/** Every mount has its volume, and every setting that names a file lies in a mount. */
function faultsOfMounts(at: string, spec: Document, { volumeMounts = [], env = [] }: Document): string[] {
  const mounts = volumeMounts as Document[];
  const volumes = [
    ...((spec.volumes ?? []) as Document[]).map(({ name }) => name as string),
    // of a StatefulSet, for each pod its own
    'data',
  ];
  const files = (env as Document[]).filter(({ name }) => /_FILE$/.test(name as string));
  return [
    ...mounts
      .filter(({ name }) => !volumes.includes(name as string))
      .map(({ name }) => `${at} mounts ${name}, which it lacks`),
    ...files
      .filter(({ value }) => !mounts.some(({ mountPath }) => String(value).startsWith(`${mountPath}/`)))
      .map(({ name, value }) => `${at} has ${name} at ${value}, where nothing is mounted`),
  ];
}
