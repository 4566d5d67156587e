import { userInfo } from 'node:os';
import { PROCESSES } from '../core/processes.ts';

const OPERATOR = 'operator:';

export const isOperator = (name: string): boolean => name.startsWith(OPERATOR);
/** "operator:ada" -> "operator": how the `callers` of a method's options name a process. */
export const callerRole = (name: string): string => name.split(':', 1)[0]!;

/**
 * The subject alternative name of a process or operator: the name of a process as a DNS name, as TLS names servers, and
 * that of an operator as a URI (RFC 5280, 4.2.1.6): "operator:ada" has the form of one.
 */
export const sanOf = (name: string): { type: 'dns' | 'url'; value: string } =>
  isOperator(name)
    ? { type: 'url', value: `${OPERATOR}${encodeURIComponent(name.slice(OPERATOR.length))}` }
    : { type: 'dns', value: name };

/**
 * The name in a certificate, as Node gives its subject alternative names ("DNS:memory", "URI:operator:ada").
 * @returns undefined unless the certificate has exactly one name, and it is that of a process or operator
 */
export function nameOfSan(subjectAltName: string | undefined): string | undefined {
  const [type, value = ''] = subjectAltName?.match(/^(DNS|URI):(.*)$/s)?.slice(1) ?? [];
  if (type === 'DNS') return Object.hasOwn(PROCESSES, value) ? value : undefined;
  const encoded = /^operator:([\w.!~*()%-]+)$/.exec(value)?.[1];
  return type === 'URI' && encoded !== undefined ? decoded(encoded) : undefined;
}

function decoded(encoded: string): string | undefined {
  try {
    return `${OPERATOR}${decodeURIComponent(encoded)}`;
  } catch {
    return undefined;
  }
}

/** Name of the user of the operating system in a certificate: "operator:ada". */
export function operatorName(): string {
  try {
    return `operator:${userInfo().username}`;
  } catch {
    // The user of a container often has no entry in /etc/passwd.
    return `operator:uid-${process.getuid?.() ?? 'unknown'}`;
  }
}
