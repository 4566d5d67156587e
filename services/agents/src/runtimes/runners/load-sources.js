// The first module of a runner, in plain JavaScript: the sources of all others come by the standard input, with their
// types stripped (stripped-sources.ts).
import { readFileSync } from 'node:fs';
import { registerHooks } from 'node:module';

/** By URL. */
const sources = new Map(Object.entries(JSON.parse(readFileSync(0, 'utf8'))));

registerHooks({
  load: (url, context, nextLoad) =>
    sources.has(url) ? { format: 'module', source: sources.get(url), shortCircuit: true } : nextLoad(url, context),
});
