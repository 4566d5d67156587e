import { userInfo } from 'node:os';
import type { CallOptions, ServiceClient, ServiceDefinition } from './call.ts';
import { clientOf, openConnection, type Caller, type Connection } from './client.ts';
import { ServiceError } from '../core/errors.ts';
import { openIdentity } from './identity.ts';
import { newId } from '../core/ids.ts';
import { keyFileOf, peersFileOf } from './keys.ts';
import { Principal } from '../core/principal.ts';
import { PROCESSES, settingOf, type ProcessName } from '../core/processes.ts';

/** Key name of the person at this machine: "operator:ada". */
export function operatorName(): string {
  try {
    return `operator:${userInfo().username}`;
  } catch {
    // a container's user often has no entry in the system's list
    return `operator:uid-${process.getuid?.() ?? 'unknown'}`;
  }
}

export interface Operator {
  /** "ada": how the audit trail names the holder of this key. */
  readonly name: string;
  client<D extends ServiceDefinition>(definition: D, process: ProcessName): ServiceClient<D>;
  /** One for each replica that the process's address names. */
  clients<D extends ServiceDefinition>(definition: D, process: ProcessName): ServiceClient<D>[];
  /** Options of a call as this operator; with an organization when the call acts on one. */
  as(organizationId?: string): CallOptions;
  /** Options of a call as a principal that auth made (`AssumeUser`). */
  asPrincipal(principal: Principal): CallOptions;
  close(): void;
}

/** Speaks gRPC with an operator's own key. @throws StartError when there is no key */
export function openOperator({
  name = operatorName(),
  keyFolder,
  addresses,
}: {
  name?: string;
  keyFolder: string;
  addresses: Readonly<Record<string, string | undefined>>;
}): Operator {
  const identity = openIdentity({ name, keyFile: keyFileOf(keyFolder, name), peersFile: peersFileOf(keyFolder) });
  const subject = name.slice('operator:'.length);
  const connections = new Map<string, Connection>();
  const addressOf = (process: ProcessName): string =>
    addresses[settingOf(process, 'ADDRESS')] ?? addresses[settingOf(process, 'LISTEN')] ?? PROCESSES[process];
  const connectionTo = (process: ProcessName, address: string): Connection => {
    const key = `${process} ${address}`;
    const known = connections.get(key);
    if (known) return known;
    const { call, close } = openConnection({ address, audience: process, identity });
    const connection: Connection = { call: saying({ name, process, address }, call), close };
    connections.set(key, connection);
    return connection;
  };
  const asPrincipal = (principal: Principal): CallOptions => ({ principal, requestId: newId() });
  return {
    name: subject,
    client: (definition, process) => clientOf(definition, connectionTo(process, addressOf(process)).call),
    clients: (definition, process) =>
      addressOf(process)
        .split(',')
        .map((address) => clientOf(definition, connectionTo(process, address).call)),
    as: (organizationId = '') =>
      asPrincipal({ ...Principal.decode(new Uint8Array()), kind: 'OPERATOR', organizationId, subject, name: subject }),
    asPrincipal,
    close: () => connections.forEach((connection) => connection.close()),
  };
}

/** What keeps an operator from reaching a process, in words that help. */
const saying =
  ({ name, process, address }: { name: string; process: ProcessName; address: string }, call: Caller): Caller =>
  async (...request) => {
    try {
      return await call(...request);
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      // a service that refuses says why; without a word from it, its address did not answer
      if (error.reason === 'UNAVAILABLE' && error.cause)
        throw new ServiceError('UNAVAILABLE', `${process} does not answer at ${address}: is it running?`, {
          cause: error,
        });
      if (error.reason === 'UNAUTHENTICATED')
        throw new ServiceError(
          'UNAUTHENTICATED',
          `${process} does not know the key of ${name}; it reads the keys when it starts`,
          { cause: error },
        );
      throw error;
    }
  };
