import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { DAY_MS, machineClock, type Clock } from 'platform/core/clock.ts';
import { followFiles } from 'platform/core/followed-files.ts';
import type { Log } from 'platform/core/log.ts';
import { StartError } from 'platform/core/start-error.ts';

/** A certificate that nobody has renewed so long before its end is in the log once a day. */
const WARN_BEFORE_MS = 14 * DAY_MS;

export interface TlsFiles {
  /** PEM: the certificate of this gateway, then those of the authorities between it and a root. */
  certFile: string;
  /** PEM. */
  keyFile: string;
}
export interface TlsPair {
  cert: string;
  key: string;
}
interface Loaded extends TlsPair {
  /** Milliseconds since the epoch. */
  endsAt: number;
}
export interface Tls {
  pair(): TlsPair;
  /** When the certificate ends, in milliseconds since the epoch. */
  endsAt(): number;
  /** Calls `notify` with each new pair. */
  onRenewed(notify: (pair: TlsPair) => void): void;
  /** Looks for new files no longer. */
  close(): void;
}

/**
 * Reads the certificate that the gateway shows its clients, and reads it again when the files change. Files that do not
 * fit together, because only one of them has changed yet, are left for the next time.
 * @throws StartError when a file cannot be read or is not PEM, the key is another's, or the certificate is past its end
 */
export function openTls(files: TlsFiles, log: Log, clock: Clock = machineClock): Tls {
  let warnedAt = Number.NEGATIVE_INFINITY;
  const warnOfEnd = ({ endsAt }: Loaded): void => {
    const now = clock.now();
    if (endsAt - now > WARN_BEFORE_MS || now - warnedAt < DAY_MS) return;
    warnedAt = now;
    log.warn({ endsAt: new Date(endsAt).toISOString() }, 'the certificate for clients ends soon');
  };
  const followed = followFiles({
    read: () => read(files),
    load: (pair) => load(pair, files, clock),
    eachSecond: warnOfEnd,
    log,
    warning: 'new files of the certificate for clients are not used',
  });
  return {
    pair: followed.current,
    endsAt: () => followed.current().endsAt,
    onRenewed: (notify) => void followed.onChanged(notify),
    close: followed.close,
  };
}

/** @throws StartError unless both settings or none are given */
export function tlsFiles(certFile: string, keyFile: string): TlsFiles | undefined {
  if ((certFile === '') !== (keyFile === ''))
    throw new StartError('Set both GATEWAY_TLS_CERT_FILE and GATEWAY_TLS_KEY_FILE, or neither');
  return certFile === '' ? undefined : { certFile, keyFile };
}

function load({ cert, key }: TlsPair, files: TlsFiles, clock: Clock): Loaded {
  const fault = (what: string, cause?: unknown): StartError =>
    new StartError(`The certificate in ${files.certFile} ${what}`, { cause });
  let endsAt: number;
  try {
    const certificate = new X509Certificate(cert);
    endsAt = certificate.validToDate.getTime();
    if (!certificate.checkPrivateKey(createPrivateKey(key)))
      throw fault(`does not belong to the private key in ${files.keyFile}`);
  } catch (cause) {
    if (cause instanceof StartError) throw cause;
    throw fault(`or the private key in ${files.keyFile} is not valid PEM`, cause);
  }
  if (clock.now() > endsAt) throw fault(`ended at ${new Date(endsAt).toISOString()}`);
  return { cert, key, endsAt };
}

const read = ({ certFile, keyFile }: TlsFiles): TlsPair => ({ cert: readText(certFile), key: readText(keyFile) });

function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (cause) {
    throw new StartError(`${file} cannot be read (${(cause as Error).message})`, { cause });
  }
}
