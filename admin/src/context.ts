import type { Command } from 'commander';
import { join, resolve } from 'node:path';
import { AuthServiceService, type Organization } from 'proto/auth/v1/auth.ts';
import type { CallOptions, ServiceClient, ServiceDefinition } from 'platform/call.ts';
import { keyFolderOf, openOperator, operatorName, type Operator } from 'platform/operator.ts';
import type { ProcessName } from 'platform/processes.ts';
import { print, printRecord, type Column } from './output.ts';
import { UsageError } from './usage-error.ts';

interface GlobalOptions {
  json?: boolean;
  organization?: string;
  as?: string;
  operator?: string;
}

/** What the commands share: the operator's connections, whom a call is made for, how an answer is printed. */
export interface Context {
  readonly dataFolder: string;
  /** A path as the person typed it, from the folder where npm was called. */
  pathOf(file: string): string;
  /** Key name: "operator:ada". */
  operatorName(): string;
  client<D extends ServiceDefinition>(definition: D, process: ProcessName): ServiceClient<D>;
  /** As the operator, on no organization in particular. */
  asOperator(): CallOptions;
  /** As the operator, on the organization of --organization. */
  onOrganization(): Promise<CallOptions>;
  organization(): Promise<Organization>;
  /** As the user of --as in the organization of --organization. */
  asUser(): Promise<CallOptions>;
  print<T extends object>(rows: readonly T[], columns: readonly Column<T>[]): void;
  printRecord(record: object): void;
  close(): void;
}

export function makeContext(program: Command, env: Readonly<Record<string, string | undefined>>): Context {
  const options = (): GlobalOptions => program.opts<GlobalOptions>();
  const pathOf = (file: string): string => resolve(env.INIT_CWD ?? '.', file);
  const dataFolder = pathOf(env.DATA_DIR || join(import.meta.dirname, '../../data'));
  let operator: Operator | undefined;
  const name = (): string => (options().operator ? `operator:${options().operator}` : operatorName());
  const connected = (): Operator => (operator ??= openOperator({ name: name(), keyFolder: keyFolderOf(dataFolder), addresses: env }));

  const organization = async (): Promise<Organization> => {
    const given = options().organization;
    if (!given) throw new UsageError('Name the organization: --organization <name-or-id>');
    const { organization: found } = await connected().client(AuthServiceService, 'auth').getOrganization({ idOrName: given }, connected().as());
    if (!found) throw new Error('auth answered without an organization');
    return found;
  };
  const onOrganization = async (): Promise<CallOptions> => connected().as((await organization()).id);

  return {
    dataFolder,
    pathOf,
    operatorName: name,
    client: (definition, process) => connected().client(definition, process),
    asOperator: () => connected().as(),
    organization,
    onOrganization,
    async asUser() {
      const email = options().as;
      if (!email) throw new UsageError('Server tokens belong to a security administrator: --as <email>');
      const { principal } = await connected().client(AuthServiceService, 'auth').assumeUser({ email }, await onOrganization());
      if (!principal) throw new Error('auth made no principal');
      return connected().asPrincipal(principal);
    },
    print: (rows, columns) => print(rows, columns, options().json === true),
    printRecord: (record) => printRecord(record, options().json === true),
    close: () => operator?.close(),
  };
}
