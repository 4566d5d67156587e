import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { render, type Document } from '../../tools/k8s/src/render.ts';
import { REPOSITORY } from '../support/stack.ts';
import { faultsOfNetwork } from './network-rules.ts';
import { faultsOfReferences } from './reference-rules.ts';
import { faultsOfWorkloads } from './workload-rules.ts';

const FOLDER = join(REPOSITORY, 'deploy/k8s');
export const OVERLAYS = readdirSync(join(FOLDER, 'overlays'));
export const overlay = (name: string): Document[] => render(join(FOLDER, 'overlays', name));
/** The overlay for production with one more component. */
export const productionWith = (component: string): Document[] =>
  render(join(FOLDER, 'components', component), overlay('production'));
/** The secrets that deploy/k8s/README.md asks an operator of production for. */
export const SUPPLIED = [...readFileSync(join(FOLDER, 'README.md'), 'utf8').matchAll(/^\| `([\w-]+)` \|/gm)].map(
  ([, name]) => name as string,
);

export const faultsOf = (documents: readonly Document[], supplied: readonly string[]): string[] => [
  ...faultsOfReferences(documents, new Set(supplied)),
  ...faultsOfWorkloads(documents),
  ...faultsOfNetwork(documents),
];
