import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { startCluster, type Cluster, type Outcome } from './cluster.ts';
import { OVERLAYS, streamOf } from './lint.ts';
import { MUTANTS } from './mutants.ts';
import { render, type Document } from './render.ts';

const NAMESPACE = 'agent-memory';
/** Its module has the definitions of its kinds, by which the server then checks them. */
const CERT_MANAGER = 'github.com/cert-manager/cert-manager@v1.19.1';
/** An update takes 45 s for each replica (minReadySeconds). */
const WITHIN = '--timeout=300s';
/** More than one core: far above what any replica asks for. */
const BUSY_MILLIS = 5_000;

/** What must be true of a cluster; the sentence is printed with the outcome. */
type Expect = (sentence: string, outcome: Outcome | boolean) => void;
interface Step {
  cluster: Cluster;
  documents: readonly Document[];
  expect: Expect;
}

/**
 * Applies each overlay to a cluster of its own.
 * @param program the Go program `cluster`
 * @returns whether everything was as it must be
 */
export async function verify(program: string): Promise<boolean> {
  let isFine = true;
  for (const name of readdirSync(OVERLAYS).sort()) {
    const documents = render(join(OVERLAYS, name));
    const expect: Expect = (sentence, outcome) => {
      const holds = typeof outcome === 'boolean' ? outcome : outcome.succeeded;
      const why = holds || typeof outcome === 'boolean' ? '' : `\n${outcome.said.split('\n').slice(-5).join('\n')}`;
      process.stdout.write(`${holds ? 'ok  ' : 'FAIL'} ${name}: ${sentence}${why}\n`);
      isFine &&= holds;
    };
    const cluster = await startCluster(program);
    try {
      const step = { cluster, documents, expect };
      prepare(step);
      isAccepted(step);
      if (name === 'local') refusesMutants(step);
      rollsOut(step);
      updates(step);
      keepsBudgets(step);
      scales(step);
      grantsLittle(step);
    } finally {
      await cluster.stop();
    }
  }
  return isFine;
}

const ofKind = (documents: readonly Document[], kind: string): Document[] =>
  documents.filter((document) => document.kind === kind);
const inNamespace = ({ kubectl }: Cluster, ...args: string[]): Outcome => kubectl(['--namespace', NAMESPACE, ...args]);
const applied = ({ kubectl }: Cluster, documents: readonly Document[], ...flags: string[]): Outcome =>
  kubectl(['apply', '--validate=strict', ...flags, '--filename', '-'], streamOf(documents));
/** The server does all but store it; what it would only warn of is an error. */
const tried = (cluster: Cluster, documents: readonly Document[]): Outcome =>
  applied(cluster, documents, '--dry-run=server', '--warnings-as-errors');

/** What a cluster has before: the kinds of cert-manager, volumes for the engines, and the namespace. */
function prepare({ cluster, documents, expect }: Step): void {
  if (documents.some(({ apiVersion }) => apiVersion === 'cert-manager.io/v1')) {
    const { stdout } = spawnSync('go', ['mod', 'download', '-json', CERT_MANAGER], { encoding: 'utf8' });
    const folder = join((JSON.parse(stdout) as { Dir: string }).Dir, 'deploy/crds');
    const files = ['certificates', 'issuers'].flatMap((kind) => [
      '--filename',
      join(folder, `cert-manager.io_${kind}.yaml`),
    ]);
    expect('the kinds of cert-manager are there', cluster.kubectl(['apply', '--server-side', ...files]));
    expect('they are served', cluster.kubectl(['wait', '--for=condition=Established', 'crd', '--all', WITHIN]));
  }
  const volumes = ofKind(documents, 'StatefulSet').map(({ metadata }) => ({
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name: metadata.name as string },
    spec: { capacity: { storage: '10Gi' }, accessModes: ['ReadWriteOnce'], hostPath: { path: '/nothing' } },
  }));
  expect('the namespace is accepted', applied(cluster, [...volumes, ...ofKind(documents, 'Namespace')]));
}

function isAccepted({ cluster, documents, expect }: Step): void {
  expect('the server accepts every document without a warning', tried(cluster, documents));
}

function refusesMutants({ cluster, documents, expect }: Step): void {
  for (const { name, change, seenByLintAlone } of MUTANTS) {
    if (seenByLintAlone) continue;
    const mutant = change(structuredClone([...documents]));
    const flags = ['--validate=strict', '--dry-run=server', '--warnings-as-errors'];
    expect(`the server refuses ${name}`, !cluster.kubectl(['apply', ...flags, '--filename', '-'], mutant).succeeded);
  }
}

function rollsOut({ cluster, documents, expect }: Step): void {
  expect('it is applied', applied(cluster, documents));
  for (const kind of ['Deployment', 'StatefulSet'])
    for (const { metadata } of ofKind(documents, kind))
      expect(
        `${kind} ${metadata.name} is rolled out`,
        inNamespace(cluster, 'rollout', 'status', `${kind}/${metadata.name}`, WITHIN),
      );
  for (const { metadata, spec } of ofKind(documents, 'HorizontalPodAutoscaler')) {
    const ready = `--for=jsonpath={.status.readyReplicas}=${spec.minReplicas}`;
    expect(
      `${metadata.name} has its ${spec.minReplicas} replicas`,
      inNamespace(cluster, 'wait', `deployment/${metadata.name}`, ready, WITHIN),
    );
  }
  expect('the jobs are done', inNamespace(cluster, 'wait', '--for=condition=Complete', 'job', '--all', WITHIN));
  expect('applied again, it changes nothing', cluster.kubectl(['diff', '--filename', '-'], streamOf(documents)));
  const { stdout } = inNamespace(cluster, 'get', 'endpointslices', '--output', 'json');
  const slices = (JSON.parse(stdout) as { items: Document[] }).items;
  const found = ofKind(documents, 'Service').filter(({ metadata }) =>
    slices.some(
      (slice) =>
        slice.metadata.labels['kubernetes.io/service-name'] === metadata.name &&
        slice.endpoints?.some(({ conditions }: Document) => conditions.ready),
    ),
  );
  expect('every service finds ready pods', found.length === ofKind(documents, 'Service').length);
}

function updates({ cluster, expect }: Step): void {
  const image = 'registry.example.com/agent-memory/memory:next';
  expect('another image is taken', inNamespace(cluster, 'set', 'image', 'deployment/memory', `memory=${image}`));
  expect('it is rolled out replica by replica', inNamespace(cluster, 'rollout', 'status', 'deployment/memory', WITHIN));
  const images = '--output=jsonpath={.items[*].spec.containers[*].image}';
  const { stdout } = inNamespace(
    cluster,
    'get',
    'pods',
    '--selector=app.kubernetes.io/name=memory',
    '--field-selector=status.phase=Running',
    images,
  );
  expect(
    'every replica has it',
    stdout.split(' ').every((each) => each === image),
  );
}

/** Without a node for the replacement, a second replica may not go. */
function keepsBudgets({ cluster, documents, expect }: Step): void {
  const scaler = ofKind(documents, 'HorizontalPodAutoscaler').find(
    ({ metadata }) => metadata.name === 'auth',
  ) as Document;
  if (scaler.spec.minReplicas < 2) return;
  const nodes = cluster.kubectl(['get', 'nodes', '--output=jsonpath={.items[*].metadata.name}']).stdout.split(' ');
  cluster.kubectl(['cordon', ...nodes]);
  const names = '--output=jsonpath={.items[*].metadata.name}';
  const pods = inNamespace(cluster, 'get', 'pods', '--selector=app.kubernetes.io/name=auth', names).stdout.split(' ');
  const evict = (name: string): Outcome => {
    const eviction = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name, namespace: NAMESPACE } };
    const path = `/api/v1/namespaces/${NAMESPACE}/pods/${name}/eviction`;
    return cluster.kubectl(['create', '--raw', path, '--filename', '-'], JSON.stringify(eviction));
  };
  expect('one replica of auth may be evicted', evict(pods[0] as string));
  const second = evict(pods[1] as string);
  expect('a second one may not', !second.succeeded && second.said.includes('disruption budget'));
  cluster.kubectl(['uncordon', ...nodes]);
  expect('auth recovers', inNamespace(cluster, 'rollout', 'status', 'deployment/auth', WITHIN));
}

function scales({ cluster, documents, expect }: Step): void {
  const scaler = ofKind(documents, 'HorizontalPodAutoscaler').find(
    ({ metadata }) => metadata.name === 'credits',
  ) as Document;
  const { maxReplicas } = scaler.spec as { maxReplicas: number };
  const busy = `fake/cpu-millis=${BUSY_MILLIS}`;
  inNamespace(cluster, 'annotate', 'pods', '--selector=app.kubernetes.io/name=credits', busy);
  const ready = `--for=jsonpath={.status.readyReplicas}=${maxReplicas}`;
  expect(
    `under load credits gets ${maxReplicas} replicas`,
    inNamespace(cluster, 'wait', 'deployment/credits', ready, WITHIN),
  );
}

/** The account of a program has no right at all, and that of the job for certificates those over its secrets. */
function grantsLittle({ cluster, documents, expect }: Step): void {
  const may = (account: string, verb: string, what: string): boolean =>
    inNamespace(cluster, 'auth', 'can-i', verb, what, `--as=system:serviceaccount:${NAMESPACE}:${account}`).succeeded;
  for (const { metadata } of ofKind(documents, 'Deployment')) {
    const account = metadata.name as string;
    const rights = [may(account, 'get', 'secrets'), may(account, 'list', 'pods'), may(account, 'create', 'secrets')];
    expect(`${account} has no rights in the cluster`, !rights.includes(true));
  }
  if (ofKind(documents, 'Role').length === 0) return;
  const own =
    may('keys', 'get', 'secrets/memory-keys') &&
    may('keys', 'update', 'secrets/key-folder') &&
    may('keys', 'create', 'secrets');
  const others =
    may('keys', 'get', 'secrets/auth-engines') ||
    may('keys', 'list', 'secrets') ||
    may('keys', 'delete', 'secrets/memory-keys');
  expect('keys may read and change its own secrets alone', own && !others);
}
