import { AgentFault } from '../network/network-run.ts';

/** Of what a template becomes. */
const MAX_CHARACTERS = 1_048_576;
const PLACEHOLDER = /\{\{([^{}]*)\}\}/g;
const PATH = /^args(\.[^.\s]+)*$/;

/** Why a template could not be filled; undefined: it can. */
export function faultOfTemplate(template: string): string | undefined {
  const unknown = [...template.matchAll(PLACEHOLDER)].find(([, path]) => !PATH.test(path!.trim()));
  return unknown && `${unknown[0].slice(0, 100)} must be {{args}}, or a member such as {{args.customer.name}}`;
}

/**
 * Puts the args where the template has `{{args}}`, `{{args.member}}` or `{{args.list.0}}`: texts as they are, anything
 * else as JSON, what is absent as nothing. What is put in is never read as a template itself.
 * @throws AgentFault when the text becomes too long
 */
export function fillTemplate(template: string, args: unknown): string {
  let characters = template.length;
  return template.replace(PLACEHOLDER, (_placeholder, path: string) => {
    const value = valueAt(args, path.trim().split('.').slice(1));
    const text = typeof value === 'string' ? value : value === undefined ? '' : JSON.stringify(value);
    characters += text.length;
    if (characters > MAX_CHARACTERS) throw new AgentFault(`The prompt has more than ${MAX_CHARACTERS} characters`);
    return text;
  });
}

const valueAt = (value: unknown, [name, ...rest]: readonly string[]): unknown => {
  if (name === undefined) return value;
  const isHolder = typeof value === 'object' && value !== null && Object.hasOwn(value, name);
  return isHolder ? valueAt((value as Record<string, unknown>)[name], rest) : undefined;
};
