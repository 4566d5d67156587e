import { readFileSync } from 'node:fs';
import { request } from 'node:https';
import { join } from 'node:path';
import { json } from 'node:stream/consumers';
import type { Env } from 'platform/core/config.ts';
import { StartError } from 'platform/core/start-error.ts';

/** The secrets of the Kubernetes namespace in which this pod runs, by the rights of its account. */
export interface ClusterSecrets {
  /** The files that a secret holds; undefined if there is none of this name. */
  read(name: string): Promise<Record<string, Buffer> | undefined>;
  /** Makes it hold these files alone. @throws StartError also when somebody else changes it at the same time */
  write(name: string, files: Readonly<Record<string, Buffer>>): Promise<'written' | 'unchanged'>;
}

/** Where Kubernetes mounts the account of a pod. */
const ACCOUNT_FOLDER = '/var/run/secrets/kubernetes.io/serviceaccount';
const TIMEOUT_MS = 10_000;

interface Secret {
  metadata: { name: string; resourceVersion?: string; labels?: Record<string, string> };
  data?: Record<string, string>;
}

/** @throws StartError outside of a cluster */
export function openClusterSecrets(env: Env, accountFolder = ACCOUNT_FOLDER): ClusterSecrets {
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port } = env;
  if (!host || !port) throw new StartError('This is no pod of a Kubernetes cluster, whose secrets could be written');
  const account = (file: string): string => readFileSync(join(accountFolder, file), 'utf8');
  const path = `/api/v1/namespaces/${account('namespace').trim()}/secrets`;

  async function ask(method: string, name: string, body?: object): Promise<{ status: number; secret: Secret }> {
    const answer = await new Promise<{ status: number; secret: unknown }>((resolve, reject) => {
      const sent = request(
        {
          ...{ host, port, method, path: method === 'POST' ? path : `${path}/${name}` },
          headers: { Authorization: `Bearer ${account('token').trim()}`, 'Content-Type': 'application/json' },
          ca: account('ca.crt'),
          timeout: TIMEOUT_MS,
        },
        (reply) => json(reply).then((secret) => resolve({ status: reply.statusCode ?? 0, secret }), reject),
      );
      sent.on('timeout', () => sent.destroy(new Error(`no answer within ${TIMEOUT_MS / 1_000} s`)));
      sent.on('error', reject);
      sent.end(body && JSON.stringify(body));
    }).catch((cause: Error) => {
      throw new StartError(`The API server at ${host}:${port} does not answer: ${cause.message}`, { cause });
    });
    const { status, secret } = answer as { status: number; secret: Secret & { message?: string } };
    if (status >= 300 && status !== 404)
      throw new StartError(`The API server refuses to ${method} the secret ${name}: ${secret.message ?? status}`);
    return { status, secret };
  }

  return {
    async read(name) {
      const { status, secret } = await ask('GET', name);
      return status === 404 ? undefined : filesOf(secret);
    },
    async write(name, files) {
      const { status, secret: found } = await ask('GET', name);
      const data = Object.fromEntries(Object.entries(files).map(([key, value]) => [key, value.toString('base64')]));
      const metadata = { name, labels: { 'app.kubernetes.io/part-of': 'agent-memory' } };
      const secret = { apiVersion: 'v1', kind: 'Secret', type: 'Opaque', metadata, data };
      if (status === 404) await ask('POST', name, secret);
      else if (isSame(found.data ?? {}, data)) return 'unchanged';
      // with the version that was read, so that a change in between is refused
      else await ask('PUT', name, { ...secret, metadata: found.metadata });
      return 'written';
    },
  };
}

const filesOf = ({ data = {} }: Secret): Record<string, Buffer> =>
  Object.fromEntries(Object.entries(data).map(([key, value]) => [key, Buffer.from(value, 'base64')]));

const isSame = (one: Record<string, string>, other: Record<string, string>): boolean =>
  Object.keys(one).length === Object.keys(other).length &&
  Object.entries(one).every(([key, value]) => other[key] === value);
