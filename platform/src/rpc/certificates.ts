// tsyringe, which @peculiar/x509 needs, needs it; so this must be imported first
import 'reflect-metadata';
import { KeyObject, randomBytes, webcrypto, type X509Certificate } from 'node:crypto';
import {
  AuthorityKeyIdentifierExtension,
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  KeyUsageFlags,
  KeyUsagesExtension,
  SubjectAlternativeNameExtension,
  SubjectKeyIdentifierExtension,
  X509CertificateGenerator,
  X509Certificate as Issuer,
  type Extension,
} from '@peculiar/x509';
import { DAY_MS } from '../core/clock.ts';
import { isOperator, sanOf } from './peer-name.ts';

// Numbers of ADR 23. The lifetime of an authority is far longer than the time for which it issues certificates.
export const AUTHORITY_MS = 3_650 * DAY_MS;
export const CERTIFICATE_MS = 90 * DAY_MS;
/** A certificate is valid for this long before it was made: the clocks of two machines differ. */
export const SKEW_MS = 10 * 60_000;

const ALGORITHM = { name: 'Ed25519' };

/** A certificate and its private key, PEM, one after the other. */
export type CertificateAndKey = string;

/**
 * Makes an authority that may issue certificates of processes and operators, but no further authorities (RFC 5280).
 * @param now milliseconds since the epoch
 */
export async function makeAuthority(now: number): Promise<CertificateAndKey> {
  const keys = await makeKeys();
  const serialNumber = makeSerialNumber();
  const certificate = await X509CertificateGenerator.createSelfSigned({
    // Each authority has a name of its own, so that a certificate has one possible issuer.
    name: `CN=agent-and-memory-service authority ${serialNumber}`,
    serialNumber,
    notBefore: new Date(now - SKEW_MS),
    notAfter: new Date(now + AUTHORITY_MS),
    signingAlgorithm: ALGORITHM,
    keys,
    extensions: [
      new BasicConstraintsExtension(true, 0, true),
      new KeyUsagesExtension(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign, true),
      await SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
  return pemOf(certificate.toString('pem'), keys.privateKey);
}

/**
 * Makes a key and a certificate whose only subject alternative name is that of a process or operator. An operator can
 * only call; a process can also answer.
 * @param name "memory" or "operator:ada"
 * @param now milliseconds since the epoch
 */
export async function issueCertificate(
  authority: { certificate: X509Certificate; key: KeyObject },
  name: string,
  now: number,
): Promise<CertificateAndKey> {
  const keys = await makeKeys();
  const issuer = new Issuer(authority.certificate.raw);
  const signingKey = authority.key.toCryptoKey(ALGORITHM, false, ['sign']);
  const usages = isOperator(name)
    ? [ExtendedKeyUsage.clientAuth]
    : [ExtendedKeyUsage.clientAuth, ExtendedKeyUsage.serverAuth];
  const extensions: Extension[] = [
    new BasicConstraintsExtension(false, undefined, true),
    new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
    new ExtendedKeyUsageExtension(usages),
    new SubjectAlternativeNameExtension([sanOf(name)]),
    await AuthorityKeyIdentifierExtension.create(issuer, false),
  ];
  const certificate = await X509CertificateGenerator.create({
    subject: [{ CN: [name] }],
    issuer: issuer.subject,
    serialNumber: makeSerialNumber(),
    notBefore: new Date(now - SKEW_MS),
    notAfter: new Date(Math.min(now + CERTIFICATE_MS, authority.certificate.validToDate.getTime())),
    signingAlgorithm: ALGORITHM,
    signingKey,
    publicKey: keys.publicKey,
    extensions,
  });
  return pemOf(certificate.toString('pem'), keys.privateKey);
}

const makeKeys = (): Promise<webcrypto.CryptoKeyPair> =>
  webcrypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify']) as Promise<webcrypto.CryptoKeyPair>;

/** Positive and at most 20 bytes long (RFC 5280, 4.1.2.2). */
const makeSerialNumber = (): string => `7f${randomBytes(15).toString('hex')}`;

const pemOf = (certificate: string, privateKey: webcrypto.CryptoKey): CertificateAndKey =>
  `${certificate.trim()}\n${KeyObject.from(privateKey).export({ type: 'pkcs8', format: 'pem' }).toString()}`;
