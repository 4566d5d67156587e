import { codeOf, ERRORS, type KnownReason } from 'platform/core/errors.ts';
import type { OpenApiDocument, Operation, Parameter, ReplyObject } from './openapi.ts';
import { ERROR_GUIDE } from './error-guide.ts';
import type { JsonSchema } from './schemas.ts';

/** Allowed by its hash: the page needs neither scripts nor other addresses. */
export const STYLE = `
:root { color-scheme: light dark }
body { font: 16px/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 64rem; padding: 1rem }
h2 { margin-top: 3rem; border-bottom: 1px solid #8884 }
h3 { margin-top: 2.5rem }
h1, h2, h3, p, li { overflow-wrap: anywhere }
code, pre { font: 0.875em/1.5 ui-monospace, monospace }
h3 code { font-size: 1em; font-weight: bold }
pre { background: #8881; padding: 0.75rem; overflow-x: auto; border-radius: 4px }
.table { overflow-x: auto; margin: 0.5rem 0 }
table { border-collapse: collapse; width: 100% }
th, td { text-align: left; vertical-align: top; padding: 0.3rem 1rem 0.3rem 0; border-bottom: 1px solid #8884 }
td:first-child { white-space: nowrap }
td + td code { overflow-wrap: anywhere }
nav ul { columns: 2 24rem; padding-left: 1rem }
wbr { display: none }
:target { background: #fc03 }
@media (max-width: 40rem) {
  table { font-size: 0.875rem }
  th, td { padding-right: 0.5rem }
  td:first-child { white-space: normal }
  wbr { display: inline }
}
`;

/** The contract as one HTML page that works without scripts. */
export function referencePage(document: OpenApiDocument): string {
  const operations = Object.entries(document.paths).flatMap(([path, verbs]) =>
    Object.entries(verbs).map(([verb, operation]) => ({ title: `${verb.toUpperCase()} ${path}`, operation })),
  );
  const sections = document.tags.map((tag) => ({
    tag,
    operations: operations.filter(({ operation }) => operation.tags.includes(tag.name)),
  }));
  return `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${text(document.info.title)}</title>
<style>${STYLE}</style></head>
<body>
<h1>${text(document.info.title)}</h1>
<p>${prose(document.info.description)}</p>
<p>${prose('A request sends its token as `Authorization: Bearer <token>`; those that need none say so.')}</p>
<p>The same as an OpenAPI 3.1 document: <a href="/openapi.json">/openapi.json</a>.</p>
<nav><ul>
${sections
  .flatMap((section) => section.operations)
  .map(({ title, operation }) => `<li><a href="#${operation.operationId}">${text(title)}</a></li>`)
  .join('\n')}
<li><a href="#schemas">Schemas of replies</a></li>
<li><a href="#codes">Codes of errors</a></li>
</ul></nav>
${sections
  .map(
    ({ tag, operations }) =>
      `<h2>${text(tag.name)}</h2>\n<p>${prose(tag.description)}</p>\n` +
      operations.map(({ title, operation }) => operationSection(title, operation)).join('\n'),
  )
  .join('\n')}
<h2 id="schemas">Schemas of replies</h2>
${Object.entries(document.components.schemas)
  .map(([name, schema]) => `<h3 id="schema-${text(name)}">${text(name)}</h3>\n${described(schema)}${members(schema)}`)
  .join('\n')}
<h2 id="codes">Codes of errors</h2>
${table(
  ['Code', 'Status', 'Cause', 'Remedy'],
  Object.keys(ERRORS).map((key) => codeRow(key as KnownReason)),
)}
</body></html>
`;
}

function operationSection(title: string, operation: Operation): string {
  const { operationId, summary, parameters, requestBody, responses, security } = operation;
  const body = contentOf(requestBody);
  return `<h3 id="${operationId}"><code>${text(title)}</code></h3>
<p>${prose(summary)}${security?.length === 0 ? ' Needs no token.' : ''}</p>
${parameters.length === 0 ? '' : `<h4>Parameters</h4>${parameterTable(parameters)}`}
${body ? `<h4>Body</h4>${members(body.schema)}${example('Example', body.example)}` : ''}
<h4>Replies</h4>
${table(
  ['Status', 'Meaning', 'Headers'],
  Object.entries(responses).map(([status, reply]) => replyRow(status, reply)),
)}
${Object.entries(responses)
  .map(([status, reply]) => example(`Example of ${status}`, contentOf(reply)?.example))
  .join('')}`;
}

const parameterTable = (parameters: readonly Parameter[]): string =>
  table(
    ['Name', 'In', 'Value'],
    parameters.map(({ name, in: place, required, schema, description }) =>
      row([
        code(name) + (required ? ' (required)' : ''),
        place,
        valueOf(schema) + (description === undefined ? '' : `. ${prose(description)}`),
      ]),
    ),
  );

function members(schema: JsonSchema): string {
  const properties = Object.entries((schema.properties ?? {}) as Record<string, JsonSchema>);
  if (properties.length === 0) return '';
  const required = (schema.required ?? []) as readonly string[];
  return table(
    ['Member', 'Value'],
    properties.map(([name, property]) =>
      row([
        code(name) + (required.includes(name) ? ' (required)' : ''),
        [valueOf(property), typeof property.description === 'string' ? prose(property.description) : '']
          .filter((part) => part !== '')
          .join('. '),
      ]),
    ),
  );
}

const BOUNDS = ['format', 'pattern', 'minLength', 'maxLength', 'minimum', 'maximum', 'maxItems', 'const', 'default'];
const UNSAID: readonly unknown[] = [Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER, 2 ** 31 - 1, -(2 ** 31)];

/** What a value may be, in a few words. */
function valueOf(schema: JsonSchema): string {
  if (typeof schema.$ref === 'string') {
    const name = schema.$ref.slice(schema.$ref.lastIndexOf('/') + 1);
    return `<a href="#schema-${text(name)}">${text(name)}</a>`;
  }
  const choices = choicesOf(schema);
  if (choices.length > 1) return [...new Set(choices.map(valueOf))].join(' or ') + bounds(schema);
  if (schema.type === 'array' && schema.items) return `list of ${valueOf(schema.items as JsonSchema)}${bounds(schema)}`;
  if (Array.isArray(schema.enum))
    return `one of ${schema.enum.map((value) => code(JSON.stringify(value))).join(', ')}${bounds(schema)}`;
  const type = [schema.type ?? 'any JSON value'].flat().map(String).join(' or ');
  return text(type) + bounds(schema);
}

/** What it may be one of, however nested. */
const choicesOf = (schema: JsonSchema): readonly JsonSchema[] =>
  ((schema.anyOf ?? schema.oneOf) as readonly JsonSchema[] | undefined)?.flatMap(choicesOf) ?? [schema];

const bounds = (schema: JsonSchema): string =>
  BOUNDS.filter((name) => schema[name] !== undefined && !UNSAID.includes(schema[name]))
    .map((name) => `, ${name} ${code(String(schema[name]))}`)
    .join('');

function replyRow(status: string, reply: ReplyObject): string {
  const { description, headers = {} } = reply;
  const schema = contentOf(reply)?.schema;
  // a reply is never null
  const bodies = schema ? choicesOf(schema).filter((choice) => (choice.$ref ?? choice.items) !== undefined) : [];
  const body = [...new Set(bodies.map(valueOf))].join(' or ');
  const meaning = Number(status) < 400 ? [prose(description), body].join(' ').trim() : linkCodes(description);
  return row([status, meaning, Object.keys(headers).map(code).join(' ')]);
}

const linkCodes = (description: string): string =>
  text(description).replaceAll(/`([a-z_]+)`/g, '<a href="#code-$1"><code>$1</code></a>');

function codeRow(reason: KnownReason): string {
  const name = codeOf(reason);
  const { cause, remedy } = ERROR_GUIDE[reason];
  return row(
    [code(name).replaceAll('_', '_<wbr>'), String(ERRORS[reason].http), prose(cause), prose(remedy)],
    `code-${name}`,
  );
}

/** What is too wide for a phone scrolls by itself. */
const table = (heads: readonly string[], rows: readonly string[]): string =>
  `<div class="table"><table><tr>${heads.map((head) => `<th>${head}</th>`).join('')}</tr>\n` +
  `${rows.join('\n')}\n</table></div>\n`;
const row = (cells: readonly string[], id?: string): string =>
  `<tr${id === undefined ? '' : ` id="${id}"`}>${cells.map((cell) => `<td>${cell}</td>`).join('')}</tr>`;

function contentOf(given: JsonSchema | ReplyObject | undefined): { schema: JsonSchema; example?: unknown } | undefined {
  const content = given?.content as ReplyObject['content'];
  return content?.['application/json'] ?? content?.['text/event-stream'];
}

const described = ({ description }: JsonSchema): string =>
  typeof description === 'string' ? `<p>${prose(description)}</p>\n` : '';
const example = (title: string, value: unknown): string =>
  value === undefined ? '' : `<p>${title}:</p>\n<pre>${text(JSON.stringify(value, null, 2))}</pre>\n`;
const code = (value: string): string => `<code>${text(value)}</code>`;
/** Text in which backquotes mark code. */
const prose = (value: unknown): string => text(value).replaceAll(/`([^`]+)`/g, '<code>$1</code>');
const text = (value: unknown): string =>
  String(value).replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
