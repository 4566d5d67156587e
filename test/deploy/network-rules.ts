import { nameOf, type Document } from '../../tools/k8s/src/render.ts';
import { hasPort, NAME_LABEL, ofKind, selects, workloadsOf, type Workload } from './pods.ts';
import { PROGRAMS } from './programs.ts';

/** Who uses an engine: whoever has the setting with its URL. */
const ENGINES = { mongodb: 'MONGODB_URL', redis: 'REDIS_URL', kafka: 'KAFKA_BROKERS' };

/** "auth -> credits": each pair of programs that may speak, as the programs declare it. */
export function expectedArrows(documents: readonly Document[], programs = PROGRAMS): string[] {
  const engines = Object.entries(ENGINES).filter(([name]) => workloadsOf(documents).some((each) => each.name === name));
  return [
    ...programs.flatMap(({ name, calls }) => calls.map((called) => `${name} -> ${called}`)),
    ...programs.map(({ name }) => `operator -> ${name}`),
    ...engines.flatMap(([engine, setting]) =>
      programs.filter(({ settings }) => setting in settings).map(({ name }) => `${name} -> ${engine}`),
    ),
  ].sort();
}

/** Faults of who may speak to whom. */
export function faultsOfNetwork(documents: readonly Document[], programs = PROGRAMS): string[] {
  const policies = ofKind(documents, 'NetworkPolicy');
  const workloads = workloadsOf(documents);
  const expected = expectedArrows(documents, programs);
  const deniesAll = policies.some(
    ({ spec }) =>
      Object.keys(spec.podSelector as object).length === 0 &&
      spec.policyTypes.join() === 'Ingress,Egress' &&
      !spec.ingress &&
      !spec.egress,
  );
  return [
    ...(deniesAll ? [] : ['no policy denies what no other allows']),
    ...differences('in', arrowsOf(policies, workloads, 'ingress'), expected),
    ...differences('out', arrowsOf(policies, workloads, 'egress'), expected),
    ...policies.flatMap((policy) => faultsOfPolicy(policy, workloads)),
  ];
}

const differences = (way: string, found: string[], expected: string[]): string[] => [
  ...expected.filter((arrow) => !found.includes(arrow)).map((arrow) => `${arrow} is not let ${way}`),
  ...found
    .filter((arrow) => !expected.includes(arrow))
    .map((arrow) => `${arrow} is let ${way}, and nobody declares it`),
];

/** Names of the workloads' pods that a selector takes. */
const namesOf = (selector: object, workloads: readonly Workload[]): string[] => [
  ...new Set(workloads.filter(({ labels }) => selects(selector, labels)).map(({ name }) => name)),
];

const peersOf = (rule: Document, way: 'ingress' | 'egress'): Document[] =>
  ((way === 'ingress' ? rule.from : rule.to) ?? []) as Document[];

function arrowsOf(policies: readonly Document[], workloads: readonly Workload[], way: 'ingress' | 'egress'): string[] {
  const arrows = policies.flatMap(({ spec }) =>
    namesOf(spec.podSelector as object, workloads).flatMap((own) =>
      ((spec[way] ?? []) as Document[])
        .flatMap((rule) => peersOf(rule, way))
        .filter(({ podSelector, namespaceSelector }) => podSelector && !namespaceSelector)
        .flatMap(({ podSelector }) => namesOf(podSelector as object, workloads))
        .filter((other) => other !== own)
        .map((other) => (way === 'ingress' ? `${other} -> ${own}` : `${own} -> ${other}`)),
    ),
  );
  return [...new Set(arrows)].sort();
}

/** A selector that takes nothing is a misspelled one, and so is a port that nobody has. */
function faultsOfPolicy(policy: Document, workloads: readonly Workload[]): string[] {
  const { spec } = policy;
  const at = nameOf(policy);
  const takes = (selector: object): Workload[] => workloads.filter(({ labels }) => selects(selector, labels));
  const own = takes(spec.podSelector as object);
  const faults = own.length === 0 ? [`${at} is of no pod`] : [];
  for (const way of ['ingress', 'egress'] as const)
    for (const rule of (spec[way] ?? []) as Document[]) {
      if (way === 'ingress' && peersOf(rule, way).length === 0) faults.push(`${at} lets everybody in`);
      for (const { podSelector, namespaceSelector } of peersOf(rule, way)) {
        const isOutside = !podSelector || namespaceSelector;
        if (isOutside && way === 'egress') continue;
        const peers = isOutside ? [] : takes(podSelector as object);
        if (!isOutside && peers.length === 0)
          faults.push(`${at} names pods that are not there: ${JSON.stringify(podSelector)}`);
        const servers = way === 'ingress' ? own : peers;
        for (const { port } of (rule.ports ?? []) as Document[])
          if (!servers.every((each) => hasPort(each, port as string)))
            faults.push(`${at} names the port ${port}, which its pods do not have`);
      }
    }
  return faults;
}

/** Networks that a program may reach outside of the cluster, with those that are excepted. */
export const outside = (documents: readonly Document[], name: string): { cidr: string; except: string[] }[] =>
  ofKind(documents, 'NetworkPolicy')
    .filter(({ spec }) => spec.podSelector.matchLabels?.[NAME_LABEL] === name)
    .flatMap(({ spec }) => (spec.egress ?? []) as Document[])
    .flatMap((rule) => peersOf(rule, 'egress'))
    .flatMap(({ ipBlock }) =>
      ipBlock ? [{ cidr: ipBlock.cidr as string, except: (ipBlock.except ?? []) as string[] }] : [],
    );
