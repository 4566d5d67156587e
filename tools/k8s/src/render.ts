import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';

/** A document of Kubernetes: an object of any kind. */
// eslint-disable-next-line @typescript-eslint/no-explicit-any -- its structure is the API server's to check
export type Document = Record<string, any>;

const KNOWN = ['apiVersion', 'kind', 'resources', 'components', 'images', 'patches'];

/**
 * Renders a folder with a kustomization.yaml. It knows the part of kustomize that our manifests use: resources,
 * components, images by their names, and patches of JSON Patch (RFC 6902) with a target of kind and name. `npm run k8s
 * -- lint` compares the result with kustomize itself.
 * @param given what a component changes
 * @throws Error for anything that it does not know
 */
export const render = (folder: string, given: readonly Document[] = []): Document[] => applied(folder, given);

/** Adds what a kustomization or a component has to the documents of the one that uses it, and changes them. */
function applied(folder: string, given: readonly Document[]): Document[] {
  const file = join(folder, 'kustomization.yaml');
  const [kustomization = {}] = documentsOf(file);
  const unknown = Object.keys(kustomization).filter((key) => !KNOWN.includes(key));
  if (unknown.length > 0) throw new Error(`${file} has ${unknown.join(', ')}, which render.ts does not know`);
  const { resources = [], components = [], images = [], patches = [] } = kustomization;
  const own = (resources as string[]).flatMap((name) => {
    const path = join(folder, name);
    return path.endsWith('.yaml') ? documentsOf(path) : render(path);
  });
  let documents = [...given, ...own];
  for (const component of components as string[]) documents = applied(join(folder, component), documents);
  requireUnique(documents, file);
  for (const patch of patches as Patch[]) patchAll(documents, patch, file);
  for (const image of images as ImageChange[]) changeImage(documents, image, file);
  return documents;
}

function documentsOf(file: string): Document[] {
  return parseAllDocuments(readFileSync(file, 'utf8')).map((parsed) => {
    const [fault] = [...parsed.errors, ...parsed.warnings];
    if (fault) throw new Error(`${file}: ${fault.message}`);
    return parsed.toJS() as Document;
  });
}

export const nameOf = ({ apiVersion, kind, metadata }: Document): string =>
  `${String(apiVersion)} ${String(kind)} ${String(metadata?.name)}`;

function requireUnique(documents: readonly Document[], file: string): void {
  const names = documents.map(nameOf);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice) throw new Error(`${file} renders ${twice} twice`);
}

interface Patch {
  target: { kind: string; name?: string };
  /** A list of operations, as YAML. */
  patch: string;
}
interface Operation {
  op: string;
  path: string;
  value?: unknown;
}

function patchAll(documents: readonly Document[], { target, patch }: Patch, file: string): void {
  const isWhole = (pattern: string, text: string): boolean => new RegExp(`^(?:${pattern})$`).test(text);
  const targets = documents.filter(
    ({ kind, metadata }) =>
      isWhole(target.kind, kind as string) && isWhole(target.name ?? '.*', metadata.name as string),
  );
  if (targets.length === 0) throw new Error(`${file} patches ${target.kind} ${target.name ?? ''}, which is not there`);
  const [operations] = parseAllDocuments(patch).map((parsed) => parsed.toJS() as Operation[]);
  for (const document of targets) for (const operation of operations ?? []) change(document, operation, file);
}

function change(document: Document, { op, path, value }: Operation, file: string): void {
  const steps = path
    .split('/')
    .slice(1)
    .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'));
  const last = steps.pop() as string;
  const fault = (why: string) => new Error(`${file}: ${op} ${path} of ${nameOf(document)}: ${why}`);
  let parent: Document = document;
  for (const step of steps) {
    parent = parent[step] as Document;
    if (parent === undefined) throw fault(`there is no ${step}`);
  }
  const copy = structuredClone(value);
  if (op === 'add' && Array.isArray(parent)) parent.splice(last === '-' ? parent.length : Number(last), 0, copy);
  else if (op === 'add') parent[last] = copy;
  else if (!(last in parent)) throw fault(`there is no ${last}`);
  else if (op === 'replace') parent[last] = copy;
  else if (op !== 'remove') throw fault('render.ts does not know this operation');
  else if (Array.isArray(parent)) parent.splice(Number(last), 1);
  else delete parent[last];
}

interface ImageChange {
  name: string;
  newName?: string;
  newTag?: string;
  digest?: string;
}

function changeImage(
  documents: readonly Document[],
  { name, newName = name, newTag, digest }: ImageChange,
  file: string,
) {
  const used = documents.flatMap(containersOf).filter(({ image }) => withoutVersion(image as string) === name);
  if (used.length === 0) throw new Error(`${file} changes the image ${name}, which nothing uses`);
  for (const container of used) container.image = `${newName}${digest ? `@${digest}` : newTag ? `:${newTag}` : ''}`;
}

/** "registry:5000/a/b:1@sha256:00" -> "registry:5000/a/b". */
const withoutVersion = (image: string): string => image.replace(/@.*$/, '').replace(/:[^:/]*$/, '');

/** The pod that a Deployment, StatefulSet, Job or CronJob makes. */
export const podOf = ({ kind, spec }: Document): Document | undefined =>
  kind === 'CronJob' ? spec.jobTemplate.spec.template : kind === 'Pod' ? { spec } : spec?.template;

export const containersOf = (document: Document): Document[] => {
  const pod = podOf(document)?.spec as Document | undefined;
  return [...(pod?.initContainers ?? []), ...(pod?.containers ?? [])] as Document[];
};
