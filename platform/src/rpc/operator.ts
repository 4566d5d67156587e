import type { CallOptions, ServiceClient, ServiceDefinition } from './call.ts';
import { clientOf, openConnection, type Connection, type AnyCall } from './client.ts';
import { ServiceError } from '../core/errors.ts';
import { openIdentity, type IdentityFiles } from './identity.ts';
import { newId } from '../core/ids.ts';
import { identityFilesOf } from './keys.ts';
import { operatorName } from './peer-name.ts';
import { Principal } from '../core/principal.ts';
import { replicaAddresses } from './replica-addresses.ts';
import { PROCESSES, settingOf, type ProcessName } from '../core/processes.ts';

export interface Operator {
  /** "ada": how the audit trail names the operator. */
  readonly name: string;
  client<D extends ServiceDefinition>(definition: D, process: ProcessName): ServiceClient<D>;
  /** One client for each replica that the address of the process names; a host name stands for all its addresses. */
  clients<D extends ServiceDefinition>(definition: D, process: ProcessName): Promise<ServiceClient<D>[]>;
  /** Options of a call as this operator; with an organization when the call acts on one. */
  as(organizationId?: string): CallOptions;
  /** Options of a call as a principal that auth made (`AssumeUser`). */
  asPrincipal(principal: Principal): CallOptions;
  close(): void;
}

/** Opens gRPC clients with the operator's own certificate. @throws StartError when there is none */
export function openOperator({
  name = operatorName(),
  keyFolder = '',
  files = identityFilesOf(keyFolder, name),
  addresses,
}: {
  name?: string;
  /** Of the operator's files, if they are not named. */
  keyFolder?: string;
  files?: IdentityFiles;
  addresses: Readonly<Record<string, string | undefined>>;
}): Operator {
  const identity = openIdentity({ name, ...files });
  const subject = name.slice('operator:'.length);
  const connections = new Map<string, Connection>();
  const addressOf = (process: ProcessName): string =>
    addresses[settingOf(process, 'ADDRESS')] ?? addresses[settingOf(process, 'LISTEN')] ?? PROCESSES[process];
  const connectionTo = (process: ProcessName, address: string): Connection => {
    const key = `${process} ${address}`;
    const open = connections.get(key);
    if (open) return open;
    const { call, close } = openConnection({ address, audience: process, identity, carriedBy: 'unary calls' });
    const connection: Connection = { call: explainErrors({ name, process, address }, call), close };
    connections.set(key, connection);
    return connection;
  };
  const asPrincipal = (principal: Principal): CallOptions => ({ principal, requestId: newId() });
  return {
    name: subject,
    client: (definition, process) => clientOf(definition, connectionTo(process, addressOf(process)).call),
    async clients(definition, process) {
      const addresses = await replicaAddresses(addressOf(process).split(','));
      return addresses.map((address) => clientOf(definition, connectionTo(process, address).call));
    },
    as: (organizationId = '') =>
      asPrincipal({ ...Principal.decode(new Uint8Array()), kind: 'OPERATOR', organizationId, subject, name: subject }),
    asPrincipal,
    close() {
      connections.forEach((connection) => connection.close());
      identity.close();
    },
  };
}

/** In the messages of OpenSSL, of Node and of our own check. */
const TLS_FAILED = /certificate|alert|SSL|TLS/i;

interface Place {
  /** Of the operator. */
  name: string;
  process: ProcessName;
  address: string;
}

const explainErrors = (place: Place, call: AnyCall): AnyCall =>
  ((method, request, options) =>
    method.responseStream
      ? explainedReplies(place, call({ ...method, responseStream: true }, request, options))
      : call(method, request, options).catch((error: unknown) => {
          throw explained(place, error);
        })) as AnyCall;

async function* explainedReplies(place: Place, replies: AsyncIterable<object>): AsyncGenerator<object> {
  try {
    yield* replies;
  } catch (error) {
    throw explained(place, error);
  }
}

/** Says to an operator why a process cannot be reached, or why TLS failed. */
function explained({ name, process, address }: Place, error: unknown): unknown {
  // Only an error of the transport has a cause; an error that the service sent explains itself.
  if (!(error instanceof ServiceError) || error.reason !== 'UNAVAILABLE' || !error.cause) return error;
  const why = TLS_FAILED.test((error.cause as Error).message)
    ? `it and ${name} do not accept each other's certificates`
    : 'is it running?';
  return new ServiceError('UNAVAILABLE', `${process} does not answer at ${address}: ${why}`, { cause: error });
}
