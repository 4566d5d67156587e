import type { Violation } from 'platform/core/errors.ts';
import { compileSchema } from 'platform/json-schema/schema.ts';
import type { Runtime } from '../runtime.ts';
import type { SourceDefinition } from './evaluation.ts';
import { START_MS } from './limit-watch.ts';
import type { RunnerPool } from './runner-pool.ts';

/** Of a source, in characters. */
const MAX_CHARACTERS = 65_536;
/** The runner may be slow to begin; and its report, and the check of the output, wait for those of others. */
const OVERDUE_MS = 2 * START_MS;

/**
 * A runtime whose agents are a text in one language, evaluated by the runner processes.
 * @param given.type its name, as definitions give it
 * @param given.check resolves to why a source could never be evaluated, as one sentence
 */
export function sourceRuntime(
  {
    type,
    takesTools,
    language,
    description,
    example,
    check,
  }: {
    type: string;
    takesTools: boolean;
    language: string;
    description: string;
    example: string;
    check(organizationId: string, source: string): Promise<string | undefined>;
  },
  runners: RunnerPool,
): Runtime {
  const schema = {
    description,
    examples: [{ type, language, source: example }],
    type: 'object',
    required: ['type', 'language', 'source'],
    additionalProperties: false,
    properties: {
      type: { const: type, description: 'The name of the runtime.' },
      language: { const: language, description: 'Of the source.' },
      source: { type: 'string', minLength: 1, maxLength: MAX_CHARACTERS, description: 'The program.' },
    },
  };
  const compiled = compileSchema(JSON.stringify(schema));

  async function violationsOf(organizationId: string, value: unknown): Promise<Violation[]> {
    const violations = compiled.validate(value, undefined, { showAllowed: true });
    if (violations.length > 0) return violations;
    const message = await check(organizationId, (value as SourceDefinition).source);
    return message === undefined ? [] : [{ path: '/source', message }];
  }

  return {
    schema,
    units: ['steps', 'cpuMs'],
    takesTools,
    overdueMs: OVERDUE_MS,
    check: violationsOf,
    run: (request) => runners.evaluate({ ...request, runtime: request.runtime as SourceDefinition }),
    stop: runners.stop,
  };
}
