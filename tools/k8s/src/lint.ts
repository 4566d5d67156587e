import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { parseAllDocuments } from 'yaml';
import { MUTANTS } from './mutants.ts';
import { nameOf, render, type Document } from './render.ts';

export const OVERLAYS = join(import.meta.dirname, '../../../deploy/k8s/overlays');
const COMPONENTS = join(OVERLAYS, '../components');

/** Components that no overlay has, because a cluster must serve the metric of one and collect what the other sends. */
const OPTIONAL = ['runs-autoscaler', 'traces'];

/** What cert-manager adds to a cluster; the API server's code does not know it. */
const ADDED = /^cert-manager\.io\/v1 (Issuer|Certificate) /;
const isKnown = (document: Document): boolean => !ADDED.test(nameOf(document));

/** As many documents as YAML, of which JSON is a part. */
export const streamOf = (documents: readonly Document[]): string =>
  documents.map((document) => JSON.stringify(document)).join('\n---\n');

/**
 * Checks each overlay, and that wrong ones are refused. Prints what is wrong.
 * @param program the Go program `lint`
 * @returns whether nothing is
 */
export function lint(program: string): boolean {
  const check = (input: string) => {
    const { status, stdout, stderr } = spawnSync(program, ['check'], { input, encoding: 'utf8' });
    return { accepted: status === 0, said: `${stdout}${stderr}`.trim() };
  };
  let isFine = true;
  const fault = (sentence: string): void => {
    isFine = false;
    process.stdout.write(`${sentence}\n`);
  };
  for (const name of readdirSync(OVERLAYS).sort()) {
    const documents = render(join(OVERLAYS, name));
    for (const difference of differences(documents, renderedByKustomize(program, name)))
      fault(`${name}: ${difference}`);
    const withOptional = OPTIONAL.reduce(
      (before, component) => render(join(COMPONENTS, component), before),
      structuredClone(documents),
    );
    const { accepted, said } = check(streamOf(documents.filter(isKnown)));
    const optional = check(streamOf(withOptional.filter(isKnown)));
    if (!optional.accepted) fault(`${name} with ${OPTIONAL.join(' and ')}:\n${optional.said}`);
    if (accepted) process.stdout.write(`${name}: ${said}\n`);
    else fault(`${name}:\n${said}`);
  }
  for (const { name, change, refusedBecause } of MUTANTS) {
    const { accepted, said } = check(change(render(join(OVERLAYS, 'local'))));
    if (accepted) fault(`A wrong manifest is accepted: ${name}`);
    else if (!said.includes(refusedBecause)) fault(`${name} is refused for another reason:\n${said}`);
  }
  if (isFine) process.stdout.write(`${MUTANTS.length} wrong manifests are refused\n`);
  return isFine;
}

function renderedByKustomize(program: string, name: string): Document[] {
  const { status, stdout, stderr } = spawnSync(program, ['render', join(OVERLAYS, name)], { encoding: 'utf8' });
  if (status !== 0) throw new Error(`kustomize cannot render ${name}: ${stderr}`);
  return parseAllDocuments(stdout).map((parsed) => parsed.toJS() as Document);
}

/** Between what render.ts makes, which `npm test` checks, and what kustomize makes, which a cluster gets. */
function differences(ours: readonly Document[], theirs: readonly Document[]): string[] {
  const byName = new Map(theirs.map((document) => [nameOf(document), document]));
  const missing = theirs.filter((document) => !ours.some((each) => nameOf(each) === nameOf(document)));
  return [
    ...ours
      .filter((document) => !isDeepStrictEqual(document, byName.get(nameOf(document))))
      .map((document) => `kustomize makes another ${nameOf(document)} than render.ts`),
    ...missing.map((document) => `kustomize makes ${nameOf(document)}, and render.ts does not`),
  ];
}
