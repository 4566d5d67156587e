import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { DAY_MS, machineClock, type Clock } from '../core/clock.ts';
import { ServiceError } from '../core/errors.ts';
import { followFiles } from '../core/followed-files.ts';
import type { Log } from '../core/log.ts';
import { StartError } from '../core/start-error.ts';
import { isOperator, nameOfSan } from './peer-name.ts';

/** A certificate that nobody has renewed so long before its end is in the log once a day. */
const WARN_BEFORE_MS = 14 * DAY_MS;

export interface IdentityFiles {
  /** This process's own certificate, and its private key (PEM); one file may hold both. */
  certFile: string;
  keyFile: string;
  /** The certificates of the authorities that are accepted (PEM). */
  caFile: string;
  /** Names of operators whose certificates are refused, one a line. */
  revokedFile: string;
}

/** What a process shows of itself, and whom it believes: the options of a TLS context (PEM). */
export interface TlsContext {
  cert: string;
  key: string;
  ca: string;
}

/** The other end of a connection, as its certificate names it. */
export interface Peer {
  readonly name: string;
  /**
   * Resolves while its certificate is accepted.
   * @throws ServiceError UNAUTHENTICATED once it is revoked, past its end, or its authority is no longer accepted
   */
  check(): Promise<void>;
}

export interface Identity {
  readonly name: string;
  context(): TlsContext;
  /** When its certificate ends, in milliseconds since the epoch. */
  endsAt(): number;
  /** Calls `notify` with each new context. @returns what ends that */
  onRenewed(notify: (context: TlsContext) => void): () => void;
  /** @param certificate that TLS has verified; undefined: there is none, so every check fails */
  peerOf(certificate: X509Certificate | undefined): Peer;
  /** Looks for new files no longer. */
  close(): void;
}

interface Loaded {
  context: TlsContext;
  authorities: readonly X509Certificate[];
  /** Milliseconds since the epoch. */
  endsAt: number;
}

/**
 * Reads the certificate of a process, and reads it again when the files change. Files that do not fit together, because
 * only some of them have changed yet, are left for the next time. Uses the machine's own clock, as TLS does.
 * @throws StartError when a file cannot be read, or the certificate is another's or past its end
 */
export function openIdentity({
  name,
  clock = machineClock,
  log,
  ...files
}: IdentityFiles & { name: string; clock?: Clock; log?: Log }): Identity {
  let warnedAt = Number.NEGATIVE_INFINITY;
  const warnOfEnd = ({ endsAt }: Loaded): void => {
    const now = clock.now();
    if (endsAt - now > WARN_BEFORE_MS || now - warnedAt < DAY_MS) return;
    warnedAt = now;
    log?.warn(
      { endsAt: new Date(endsAt).toISOString() },
      'the certificate ends soon; "npm run admin -- keys create" makes a new one',
    );
  };
  const followed = followFiles({
    read: () => readContext(name, files),
    load: (context) => load(name, context, files, clock),
    eachSecond: warnOfEnd,
    log,
    warning: 'new files of the certificate are not used',
  });

  return {
    name,
    context: () => followed.current().context,
    endsAt: () => followed.current().endsAt,
    onRenewed: (notify) => followed.onChanged(({ context }) => notify(context)),
    peerOf(certificate) {
      const peerName = nameOfSan(certificate?.subjectAltName);
      if (!certificate || peerName === undefined) return { name: '', check: () => Promise.reject(unauthenticated()) };
      const endsAt = certificate.validToDate.getTime();
      // TLS has verified the certificate with the authorities of its time, which may have changed since.
      let verifiedBy: Loaded | undefined;
      return {
        name: peerName,
        async check() {
          if (clock.now() > endsAt) throw unauthenticated('The certificate of the caller is past its end');
          const loaded = followed.current();
          if (verifiedBy !== loaded) {
            if (!loaded.authorities.some((one) => isIssuedBy(certificate, one)))
              throw unauthenticated('The authority of the certificate of the caller is no longer accepted');
            verifiedBy = loaded;
          }
          if (isOperator(peerName)) requireNotRevoked(peerName, files.revokedFile);
        },
      };
    },
    close: followed.close,
  };
}

/** The names in a file that has one a line. */
export const linesOf = (text: string): string[] =>
  text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');

/** Splits the PEM text of several certificates. */
export const certificatesIn = (pem: string): X509Certificate[] =>
  (pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? []).map(
    (one) => new X509Certificate(one),
  );

/** Has the authority signed the certificate? */
export const isIssuedBy = (certificate: X509Certificate, authority: X509Certificate): boolean =>
  certificate.checkIssued(authority) && certificate.verify(authority.publicKey);

const unauthenticated = (message = 'The caller has no valid certificate'): ServiceError =>
  new ServiceError('UNAUTHENTICATED', message);

/** Reads the file for each call, so that a revocation counts from the next one. Calls of operators are few. */
function requireNotRevoked(name: string, revokedFile: string): void {
  let revoked: string;
  try {
    revoked = readFileSync(revokedFile, 'utf8');
  } catch (cause) {
    throw new ServiceError('UNAVAILABLE', 'The list of revoked operators cannot be read', { cause });
  }
  if (linesOf(revoked).includes(name)) throw unauthenticated(`The certificate of ${name} is revoked`);
}

function load(name: string, context: TlsContext, files: IdentityFiles, clock: Clock): Loaded {
  const [certificate] = certificatesIn(context.cert);
  const authorities = certificatesIn(context.ca);
  const fault = faultOf(name, certificate, context, authorities, clock);
  if (fault) throw new StartError(`The certificate of ${name} in ${files.certFile} ${fault}`);
  return { context, authorities, endsAt: certificate!.validToDate.getTime() };
}

function faultOf(
  name: string,
  certificate: X509Certificate | undefined,
  { key }: TlsContext,
  authorities: readonly X509Certificate[],
  clock: Clock,
): string | undefined {
  if (!certificate) return 'cannot be read';
  const named = nameOfSan(certificate.subjectAltName);
  if (named !== name) return `is not its own: it names ${named ?? 'nobody'}`;
  if (!isKeyOf(certificate, key)) return 'does not belong to its private key';
  if (clock.now() > certificate.validToDate.getTime())
    return `ended at ${certificate.validToDate.toISOString()}; "npm run admin -- keys rotate" makes a new one`;
  if (!authorities.some((one) => isIssuedBy(certificate, one))) return 'is of none of the accepted authorities';
  return undefined;
}

function isKeyOf(certificate: X509Certificate, key: string): boolean {
  try {
    return certificate.checkPrivateKey(createPrivateKey(key));
  } catch {
    return false;
  }
}

function readContext(name: string, { certFile, keyFile, caFile }: IdentityFiles): TlsContext {
  return {
    cert: read(`The certificate of ${name}`, certFile),
    key: read(`The private key of ${name}`, keyFile),
    ca: read('The file of accepted authorities', caFile),
  };
}

function read(what: string, file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (cause) {
    const fault =
      (cause as NodeJS.ErrnoException).code === 'ENOENT'
        ? `is missing: there is no ${file}`
        : `cannot be read from ${file} (${(cause as Error).message})`;
    throw new StartError(`${what} ${fault}; check DATA_DIR, or make it with "npm run admin -- keys create"`, { cause });
  }
}
