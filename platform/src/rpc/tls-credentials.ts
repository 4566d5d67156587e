import type { Socket } from 'node:net';
import { createSecureContext, type SecureContextOptions } from 'node:tls';
import { ChannelCredentials, credentials, ServerCredentials } from '@grpc/grpc-js';
import type { Identity, TlsContext } from './identity.ts';
import { nameOfSan } from './peer-name.ts';

const HANDSHAKE_TIMEOUT_MS = 5_000;

type CreateConnector = ChannelCredentials['_createSecureConnector'];

/** grpc-js sets no version itself, and its `createSsl` takes none. */
const optionsOf = (context: TlsContext): SecureContextOptions => ({ ...context, minVersion: 'TLSv1.3' });

/** Credentials of a client that calls the named process and no other. */
export class ClientTlsCredentials extends ChannelCredentials {
  readonly #tls: ChannelCredentials;
  constructor(context: TlsContext, audience: string) {
    super();
    this.#tls = credentials.createFromSecureContext(createSecureContext(optionsOf(context)), {
      checkServerIdentity: (_host, { subjectaltname }) => {
        const name = nameOfSan(subjectaltname);
        return name === audience ? undefined : new Error(`The certificate names ${name ?? 'nobody'}, not ${audience}`);
      },
    });
  }
  /**
   * A server that takes the connection and never answers keeps neither this process running, which would wait for the
   * handshake after its last call, nor the connection.
   */
  override _createSecureConnector(...given: Parameters<CreateConnector>): ReturnType<CreateConnector> {
    const connector = this.#tls._createSecureConnector(...given);
    return {
      waitForReady: () => connector.waitForReady(),
      getCallCredentials: () => connector.getCallCredentials(),
      destroy: () => connector.destroy(),
      connect(socket: Socket) {
        socket.unref();
        const expired = Promise.withResolvers<never>();
        const timer = setTimeout(() => {
          socket.destroy();
          expired.reject(new Error(`It took the connection and did not answer within ${HANDSHAKE_TIMEOUT_MS} ms`));
        }, HANDSHAKE_TIMEOUT_MS).unref();
        return Promise.race([connector.connect(socket), expired.promise]).finally(() => clearTimeout(timer));
      },
    };
  }
  override _isSecure(): boolean {
    return true;
  }
  override _equals(other: ChannelCredentials): boolean {
    return this === other;
  }
}

/** Credentials of a server that takes only connections whose client shows a certificate of an accepted authority. */
export class ServerTlsCredentials extends ServerCredentials {
  /** Ends the renewal. */
  readonly close: () => void;
  constructor(identity: Identity) {
    super({ requestCert: true, rejectUnauthorized: true }, optionsOf(identity.context()));
    this.close = identity.onRenewed((context) => this.updateSecureContextOptions(optionsOf(context)));
  }
  override _equals(other: ServerCredentials): boolean {
    return this === other;
  }
}
