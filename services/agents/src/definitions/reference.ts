import type { Runtime } from '../runtimes/runtime.ts';
import { definitionSchema } from './definition.ts';

interface Schema {
  type?: string;
  const?: unknown;
  enum?: readonly unknown[];
  default?: unknown;
  description?: string;
  required?: readonly string[];
  properties?: Readonly<Record<string, Schema>>;
  items?: Schema;
  examples?: readonly unknown[];
  minimum?: number;
  maximum?: number;
  minLength?: number;
  maxLength?: number;
  maxItems?: number;
  pattern?: string;
}

/**
 * The reference of definition documents as Markdown, from their schema and those of the runtimes.
 * @param runtimes by the name that definitions give in `/runtime/type`
 */
export function definitionReference(runtimes: Readonly<Record<string, Pick<Runtime, 'schema' | 'units'>>>): string {
  const sections = Object.entries(runtimes).map(([type, { schema, units }]) => {
    const { description, examples } = schema as Schema;
    const example = ['```json', JSON.stringify(examples?.[0], null, 2), '```'].join('\n');
    return `### ${type}\n\n${description} It measures ${units.map((unit) => `\`${unit}\``).join(' and ')}.\n\n${tableOf(schema)}\n\n${example}\n`;
  });
  return `# Definition documents of agents

\`npm run admin -- agent apply\` reads them. A document is JSON of at most 256 KiB; unknown members are refused. This page is
made from the schemas: \`npm run docs\`.

## Members

${tableOf(definitionSchema)}

## Runtimes

${sections.join('\n')}`;
}

const tableOf = (schema: Schema): string =>
  ['| Member | Values | Default | Meaning |', '|---|---|---|---|', ...rowsOf(schema, '')].join('\n');

/** A row for each member, and for the members within it. */
const rowsOf = ({ properties = {}, required = [] }: Schema, path: string): string[] =>
  Object.entries(properties).flatMap(([name, member]) => {
    const isRequired = required.includes(name);
    const missing =
      member.default === undefined ? (isRequired ? 'required' : '') : `\`${JSON.stringify(member.default)}\``;
    const row = `| \`${path}${name}\` | ${valuesOf(member)} | ${missing} | ${cell(member.description ?? '')} |`;
    return [row, ...(name === 'runtime' ? [] : rowsOf(member, `${path}${name}.`))];
  });

function valuesOf(schema: Schema): string {
  const { type, minimum, maximum, minLength = 0, maxLength, maxItems, pattern, items } = schema;
  if (schema.const !== undefined) return `\`${String(schema.const)}\``;
  if (schema.enum) return schema.enum.map((value) => `\`${String(value)}\``).join(', ');
  if (type === 'array') return `at most ${maxItems} of: ${valuesOf(items ?? {})}`;
  if (pattern !== undefined) return `${type} that matches \`${cell(pattern)}\``;
  if (maxLength !== undefined) return `${type} of ${minLength} to ${maxLength} characters`;
  return minimum === undefined ? `${type}` : `${type} from ${minimum} to ${maximum}`;
}

const cell = (text: string): string => text.replaceAll('|', '\\|');
