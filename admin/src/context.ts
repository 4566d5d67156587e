import type { Command } from 'commander';
import { AuthServiceService, type Organization } from 'proto/auth/v1/auth.ts';
import type { CallOptions, ServiceClient, ServiceDefinition } from 'platform/rpc/call.ts';
import { readConfig, typedPath, type Env } from 'platform/core/config.ts';
import { keyFolderOf } from 'platform/rpc/keys.ts';
import { openOperator, operatorName, type Operator } from 'platform/rpc/operator.ts';
import { commonConfig } from 'platform/service/process.ts';
import type { ProcessName } from 'platform/core/processes.ts';
import { linesOf, tableOf, type Column } from './output.ts';
import type { Page } from './page.ts';
import { UsageError } from './usage-error.ts';

interface GlobalOptions {
  json?: boolean;
  organization?: string;
  as?: string;
  operator?: string;
}

/** What the commands share: the operator's connections, whom a call is made for, how an answer is printed. */
export interface Context {
  keyFolder(): string;
  /** A path as the person typed it, from the folder where npm was called. */
  pathOf(file: string): string;
  /** Key name: "operator:ada". */
  operatorName(): string;
  client<D extends ServiceDefinition>(definition: D, process: ProcessName): ServiceClient<D>;
  /** One for each replica. */
  clients<D extends ServiceDefinition>(definition: D, process: ProcessName): ServiceClient<D>[];
  /** As the operator, on no organization in particular. */
  asOperator(): CallOptions;
  /** As the operator, on the organization of --organization. */
  onOrganization(): Promise<CallOptions>;
  /** As the user of --as in the organization of --organization. */
  asUser(): Promise<CallOptions>;
  print<T extends object>(rows: readonly T[], columns: readonly Column<T>[]): void;
  /** `option` is the one that takes where the next page begins. */
  printPage<T extends object>(page: Page<T, string | number>, columns: readonly Column<T>[], option: string): void;
  /** `shown`: the record as people read it; JSON is always the record itself. */
  printRecord(record: object, shown?: object): void;
  /** For the person, beside the answer. */
  note(sentence: string): void;
  close(): void;
}

const OPERATOR_NAME = /^\w[\w.@-]{0,63}$/;

export function makeContext(program: Command, env: Env): Context {
  const options = (): GlobalOptions => program.opts<GlobalOptions>();
  const keyFolder = (): string => keyFolderOf(readConfig({ DATA_DIR: commonConfig('admin').DATA_DIR }, env).DATA_DIR);
  const name = (): string => {
    const given = options().operator;
    if (given === undefined) return operatorName();
    if (!OPERATOR_NAME.test(given))
      throw new UsageError(`${given} is not an operator's name: letters, digits and . _ @ -`);
    return `operator:${given}`;
  };
  let operator: Operator | undefined;
  const connected = (): Operator =>
    (operator ??= openOperator({ name: name(), keyFolder: keyFolder(), addresses: env }));

  const organization = async (): Promise<CallOptions> => {
    const idOrName = options().organization;
    if (!idOrName) throw new UsageError('Name the organization: --organization <name-or-id>');
    const found = await connected().client(AuthServiceService, 'auth').getOrganization({ idOrName }, connected().as());
    return connected().as((found.organization as Organization).id);
  };
  // a pipe takes any width
  const width = (): number => Number(env.COLUMNS) || process.stdout.columns || Number.POSITIVE_INFINITY;
  const write = (text: string): void => void process.stdout.write(`${text}\n`);
  const asJson = (value: object): string => JSON.stringify(value, null, 2);
  const print: Context['print'] = (rows, columns) =>
    write(options().json ? asJson(rows) : tableOf(rows, columns, width()));
  const note = (sentence: string): void => void process.stderr.write(`${sentence}\n`);

  return {
    keyFolder,
    pathOf: (file) => typedPath(file, env),
    operatorName: name,
    client: (definition, process) => connected().client(definition, process),
    clients: (definition, process) => connected().clients(definition, process),
    asOperator: () => connected().as(),
    async onOrganization() {
      if (options().as)
        throw new UsageError('--as is for server tokens alone: everything else is done as the operator');
      return organization();
    },
    async asUser() {
      const email = options().as;
      if (!email) throw new UsageError('Server tokens belong to a security administrator: --as <email>');
      const { principal } = await connected()
        .client(AuthServiceService, 'auth')
        .assumeUser({ email }, await organization());
      if (!principal) throw new Error('auth made no principal');
      return connected().asPrincipal(principal);
    },
    print,
    printPage({ rows, next }, columns, option) {
      print(rows, columns);
      if (next !== undefined) note(`There are more: ${option} ${next}`);
    },
    printRecord: (record, shown = record) => write(options().json ? asJson(record) : linesOf(shown)),
    note,
    close: () => operator?.close(),
  };
}
