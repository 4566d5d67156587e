import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

/** A control plane of this machine alone, with three nodes that run nothing. It is thrown away in the end. */
export interface Cluster {
  kubectl(args: readonly string[], input?: string): Outcome;
  stop(): Promise<void>;
}
export interface Outcome {
  succeeded: boolean;
  stdout: string;
  /** Everything that it printed. */
  said: string;
}

const STARTED_WITHIN_MS = 180_000;
const POLL_MS = 200;

/** @param program the Go program `cluster` */
export async function startCluster(program: string): Promise<Cluster> {
  const folder = mkdtempSync(join(tmpdir(), 'k8s-'));
  const file = (name: string): string => join(folder, name);
  const kubeconfig = file('kubeconfig');
  const [etcdPort, peerPort, apiPort, controllersPort, schedulerPort] = await freePorts(5);
  const etcd = `http://127.0.0.1:${etcdPort}`;
  const peer = `http://127.0.0.1:${peerPort}`;
  const token = randomBytes(24).toString('hex');
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
  writeFileSync(file('tokens.csv'), `${token},admin,admin,system:masters\n`, { mode: 0o600 });
  writeFileSync(file('accounts.key'), privateKey.export({ type: 'sec1', format: 'pem' }), { mode: 0o600 });
  writeFileSync(kubeconfig, kubeconfigOf({ apiPort: apiPort!, caFile: file('pki/apiserver.crt'), token }), {
    mode: 0o600,
  });

  const running: { name: string; child: ChildProcess }[] = [];
  const start = (name: string, ...args: string[]): void => {
    const log = openSync(file(`${name}.log`), 'w');
    running.push({ name, child: spawn(program, [name, ...args], { cwd: folder, stdio: ['ignore', log, log] }) });
  };
  const kubectl: Cluster['kubectl'] = (args, input) => {
    const given = { input, encoding: 'utf8', cwd: folder, maxBuffer: 1 << 26 } as const;
    const { status, stdout, stderr } = spawnSync(program, ['kubectl', '--kubeconfig', kubeconfig, ...args], given);
    return { succeeded: status === 0, stdout, said: `${stdout}${stderr}`.trim() };
  };
  /** Repeats a question until it succeeds. @throws Error when a process has ended or it takes too long */
  async function until(args: readonly string[]): Promise<void> {
    for (const deadline = Date.now() + STARTED_WITHIN_MS; ; await delay(POLL_MS)) {
      const outcome = kubectl(args);
      if (outcome.succeeded) return;
      const ended = running.find(({ child }) => child.exitCode !== null);
      if (!ended && Date.now() < deadline) continue;
      const why = ended
        ? `${ended.name} has ended: ${readFileSync(file(`${ended.name}.log`), 'utf8').slice(-2_000)}`
        : outcome.said;
      throw new Error(`The cluster did not start: ${why}`);
    }
  }
  /** The last one first. */
  async function stop(): Promise<void> {
    for (const { child } of running.reverse()) {
      const hasEnded = child.exitCode !== null || child.signalCode !== null;
      child.kill('SIGKILL');
      if (!hasEnded) await once(child, 'exit');
    }
    rmSync(folder, { recursive: true, force: true });
  }

  try {
    start(
      'etcd',
      ...['--name', 'one', '--data-dir', file('etcd'), '--unsafe-no-fsync', '--log-level', 'warn'],
      ...['--listen-client-urls', etcd, '--advertise-client-urls', etcd, '--listen-peer-urls', peer],
      ...['--initial-advertise-peer-urls', peer, '--initial-cluster', `one=${peer}`],
    );
    start(
      'kube-apiserver',
      ...[
        '--etcd-servers',
        etcd,
        '--bind-address',
        '127.0.0.1',
        '--secure-port',
        String(apiPort),
        '--cert-dir',
        file('pki'),
      ],
      // an address of loopback cannot be published as an endpoint
      ...['--advertise-address', '127.0.0.1', '--endpoint-reconciler-type', 'none'],
      ...['--token-auth-file', file('tokens.csv'), '--authorization-mode', 'Node,RBAC', '--anonymous-auth=false'],
      ...['--service-account-issuer', 'https://kubernetes.default.svc', '--service-cluster-ip-range', '10.96.0.0/16'],
      ...[
        '--service-account-signing-key-file',
        file('accounts.key'),
        '--service-account-key-file',
        file('accounts.key'),
      ],
      ...['--allow-privileged=true', '--enable-admission-plugins', 'NodeRestriction'],
    );
    await until(['get', '--raw', '/readyz']);
    const asAdmin = ['kubeconfig', 'authentication-kubeconfig', 'authorization-kubeconfig'].flatMap((each) => [
      `--${each}`,
      kubeconfig,
    ]);
    const alone = [...asAdmin, '--leader-elect=false', '--bind-address', '127.0.0.1'];
    start(
      'kube-controller-manager',
      ...[...alone, '--secure-port', String(controllersPort), '--cert-dir', file('pki-controllers')],
      ...['--service-account-private-key-file', file('accounts.key'), '--root-ca-file', file('pki/apiserver.crt')],
      '--horizontal-pod-autoscaler-sync-period=5s',
    );
    start('kube-scheduler', ...alone, '--secure-port', String(schedulerPort), '--cert-dir', file('pki-scheduler'));
    start('nodes', kubeconfig);
    await until(['--namespace', 'default', 'get', 'serviceaccount', 'default']);
    await until(['wait', '--for=condition=Ready', 'node', '--all', '--timeout=30s']);
    return { kubectl, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

const kubeconfigOf = ({ apiPort, caFile, token }: { apiPort: number; caFile: string; token: string }): string =>
  JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'one', cluster: { server: `https://127.0.0.1:${apiPort}`, 'certificate-authority': caFile } }],
    users: [{ name: 'admin', user: { token } }],
    contexts: [{ name: 'one', context: { cluster: 'one', user: 'admin' } }],
    'current-context': 'one',
  });

/** All are held until the last one is found, so that none is found twice. */
async function freePorts(count: number): Promise<number[]> {
  const servers = Array.from({ length: count }, () => createServer().listen(0, '127.0.0.1'));
  await Promise.all(servers.map((server) => once(server, 'listening')));
  const ports = servers.map((server) => (server.address() as AddressInfo).port);
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  return ports;
}
