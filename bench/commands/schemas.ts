import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ServiceError } from '../../platform/src/core/errors.ts';
import { strictJson } from '../../platform/src/json/strict-json.ts';
import { makeSchemaCache } from '../../platform/src/json-schema/cache.ts';
import { checkAuthoredSchema } from '../../services/memory/src/types/authored-schema.ts';

const BEFORE = '{"jsonSchema":';
const BYTE_ORDER_MARK = '\ufeff';
const CACHE_BYTES = 1e9;

/** Prints how many files of a folder memory takes as the jsonSchema of a type, and why it refuses the others. */
export function measureSchemas(folder: string): void {
  const schemas = makeSchemaCache(CACHE_BYTES);
  const files = readdirSync(folder).filter((file) => file.endsWith('.json'));
  const refused = new Map<string, string[]>();
  const before = process.cpuUsage();
  for (const file of files) {
    const reason = refusalOf(readFileSync(join(folder, file), 'utf8'));
    if (reason === undefined) continue;
    const kind = reason.replaceAll(/"[^"]*"/g, '"…"').replaceAll(/\d{4,}/g, 'N');
    refused.set(kind, [...(refused.get(kind) ?? []), file]);
  }
  const { user } = process.cpuUsage(before);
  const accepted = files.length - [...refused.values()].flat().length;
  const share = ((100 * accepted) / files.length).toFixed(1);
  process.stdout.write(
    `${accepted} of ${files.length} schemas are accepted (${share} %), ${Math.round(user / 1000 / files.length)} ms of CPU each\n\n` +
      '| refused | reason | for example |\n|--:|---|---|\n',
  );
  for (const [kind, names] of [...refused].sort(([, a], [, b]) => b.length - a.length))
    process.stdout.write(`| ${names.length} | ${kind.replaceAll('|', '\\|')} | ${names.slice(0, 2).join(', ')} |\n`);

  function refusalOf(text: string): string | undefined {
    try {
      const body = strictJson(Buffer.from(`${BEFORE}${text.replace(BYTE_ORDER_MARK, '')}}`), ['jsonSchema']);
      checkAuthoredSchema(schemas, 'bench', body.toString().slice(BEFORE.length, -1));
      return undefined;
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      return error.details[0]?.message ?? error.message;
    }
  }
}
