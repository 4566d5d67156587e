import { isIPv4 } from 'node:net';
import { resolve } from 'node:path';
import { isNetwork } from './address-ranges.ts';

export type Env = Readonly<Record<string, string | undefined>>;

/** A declared setting: type, default, bounds and a description. A setting without a default is required. */
export interface Setting<T> {
  description: string;
  default?: T;
  /** Its value is never shown or logged. */
  secret?: boolean;
  /** Turns text into the value. @throws RangeError that says what is allowed */
  parse(text: string, env: Env): T;
}
export type Declaration = Record<string, Setting<unknown>>;
export type ConfigOf<D extends Declaration> = { readonly [K in keyof D]: D[K] extends Setting<infer T> ? T : never };

type Shared<T> = { description: string; default?: T; secret?: boolean };

export function integer(spec: Shared<number> & { min: number; max: number }): Setting<number> {
  const parse = (text: string): number => {
    const value = Number(text);
    if (!/^-?\d+$/.test(text) || value < spec.min || value > spec.max)
      throw new RangeError(`must be an integer from ${spec.min} to ${spec.max}`);
    return value;
  };
  return { ...spec, parse };
}

/** @param spec.form what the text must be, in words, and the pattern that it then has */
export function text(spec: Shared<string> & { form?: [words: string, pattern: RegExp] }): Setting<string> {
  const parse = (value: string): string => {
    if (spec.form && !spec.form[1].test(value)) throw new RangeError(`must be ${spec.form[0]}`);
    return value;
  };
  return { ...spec, parse };
}

export function choice<const V extends string>(spec: Shared<V> & { values: readonly V[] }): Setting<V> {
  const parse = (value: string): V => {
    const found = spec.values.find((allowed) => allowed === value);
    if (found === undefined) throw new RangeError(`must be one of ${spec.values.join(', ')}`);
    return found;
  };
  return { ...spec, description: `${spec.description} One of ${spec.values.join(', ')}.`, parse };
}

/** True for `host:port`. */
export const isAddress = (value: string): boolean =>
  /^([\w.-]+|\[[\da-fA-F:.]+\]):\d{1,5}$/.test(value) && Number(value.slice(value.lastIndexOf(':') + 1)) <= 65_535;

/** `host:port`; port 0 means any free port. */
export function address(spec: Shared<string>): Setting<string> {
  const parse = (value: string): string => {
    if (!isAddress(value))
      throw new RangeError('must be host:port with a port from 0 to 65535, for example 127.0.0.1:9000');
    return value;
  };
  return { ...spec, parse };
}

/** `host:port` of a service, or those of its replicas, separated by commas and with IPv4 addresses as hosts. */
export function addresses(spec: Shared<string>): Setting<string> {
  const parse = (value: string): string => {
    const all = value.split(',');
    const known = all.length === 1 || all.every((one) => isIPv4(one.slice(0, one.lastIndexOf(':'))));
    if (!known || !all.every(isAddress))
      throw new RangeError('must be host:port, or several IPv4 addresses with ports and commas between them');
    return value;
  };
  return { ...spec, parse };
}

/** Networks in the form address/prefix, or single addresses, with commas between them; empty: none. */
export function networks(spec: Shared<string>): Setting<string> {
  const parse = (value: string): string => {
    if (value !== '' && !value.split(',').every(isNetwork))
      throw new RangeError('must be networks such as 10.1.0.0/16 or fd00::/8, with commas between them');
    return value;
  };
  return { ...spec, parse };
}

/** A file or folder; a relative path starts at the folder where npm, or node, was called. */
export const path = (spec: Shared<string>): Setting<string> => ({ ...spec, parse: typedPath });

/**
 * The absolute form of a path that a person typed: npm changes the working directory and sets INIT_CWD to the old
 * one.
 */
export const typedPath = (value: string, env: Env): string => resolve(env.INIT_CWD ?? '.', value);

export class ConfigError extends Error {
  override readonly name = 'ConfigError';
}

/**
 * Reads every declared setting from the environment.
 * @throws ConfigError with one line for each setting that is missing or invalid
 */
export function readConfig<D extends Declaration>(declaration: D, env: Env): ConfigOf<D> {
  const problems: string[] = [];
  const values: Record<string, unknown> = {};
  for (const [name, setting] of Object.entries(declaration)) {
    const given = env[name];
    if (given === undefined || given === '') {
      if (setting.default === undefined) problems.push(`${name} is missing: ${setting.description}`);
      values[name] = setting.default;
      continue;
    }
    try {
      values[name] = setting.parse(given, env);
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      problems.push(`${name} ${error.message}${setting.secret ? '' : `, not ${JSON.stringify(given)}`}`);
    }
  }
  if (problems.length > 0) throw new ConfigError(problems.join('\n'));
  return values as ConfigOf<D>;
}

/** The settings as text for `--help`. */
export function describeConfig(declaration: Declaration): string {
  return Object.entries(declaration)
    .map(([name, setting]) => `  ${name}${defaultText(setting)}\n      ${setting.description}`)
    .join('\n');
}

function defaultText(setting: Setting<unknown>): string {
  if (setting.default === undefined) return ' (required)';
  return setting.secret ? '' : ` (default ${JSON.stringify(setting.default)})`;
}
