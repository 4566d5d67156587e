import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import type { Command } from 'commander';
import { AuthServiceService, type Organization } from 'proto/auth/v1/auth.ts';
import type { CallOptions, ServiceClient, ServiceDefinition } from 'platform/rpc/call.ts';
import { readConfig, typedPath, type Env } from 'platform/core/config.ts';
import { requireOwnFolder } from 'platform/core/folder.ts';
import { masterKeyFile } from 'platform/core/master-key.ts';
import type { IdentityFiles } from 'platform/rpc/identity.ts';
import { keyFolderOf, masterKeyFileOf } from 'platform/rpc/keys.ts';
import { openOperator, type Operator } from 'platform/rpc/operator.ts';
import { operatorName } from 'platform/rpc/peer-name.ts';
import { StartError } from 'platform/core/start-error.ts';
import { URLS } from 'platform/service/backends.ts';
import { commonConfig, identityFiles } from 'platform/service/process.ts';
import { eventsFile } from 'platform/service/program.ts';
import { PROCESSES, type ProcessName } from 'platform/core/processes.ts';
import { openClusterSecrets, type ClusterSecrets } from './cluster-secrets.ts';
import { jsonOf, jsonTextOf, linesOf, tableOf, textOf, type Column } from './output.ts';
import type { Page } from './page.ts';
import { UsageError } from './usage-error.ts';

interface GlobalOptions {
  json?: boolean;
  wide?: boolean;
  organization?: string;
  as?: string;
  operator?: string;
}

/** Where the embedded databases are. */
export interface EmbeddedFiles {
  folder: string;
  eventsFile: string;
}

/** What all commands use: connections as the operator, the principal of a call, and output as tables or JSON. */
export interface Context {
  keyFolder(): string;
  /** The file of the keys that seal stored secrets. */
  masterKeyFile(): string;
  /** Where the embedded databases are. @throws StartError when a setting says that data is on a server instead */
  embeddedFiles(): EmbeddedFiles;
  /** Those of the namespace of this pod. @throws StartError outside of a cluster */
  clusterSecrets(): ClusterSecrets;
  /** Resolves a path relative to the folder where npm was called. */
  pathOf(file: string): string;
  /** The name in the operator's certificate, for example "operator:ada". */
  operatorName(): string;
  /** The same for another operator: "ada" -> "operator:ada". @throws UsageError for a name that nobody can have */
  operatorNamed(name: string): string;
  client<D extends ServiceDefinition>(definition: D, process: ProcessName): ServiceClient<D>;
  /** One client for each replica. */
  clients<D extends ServiceDefinition>(definition: D, process: ProcessName): Promise<ServiceClient<D>[]>;
  /** One for each gateway: "http://127.0.0.1:8080". */
  gatewayUrls(): string[];
  /** The operator as principal, without an organization. */
  asOperator(): CallOptions;
  /** The operator as principal, in the organization of this id. */
  asOperatorIn(organizationId: string): CallOptions;
  /** The operator as principal, in the organization of --organization. @throws UsageError without it or with --as */
  onOrganization(): Promise<CallOptions>;
  /** The user of --as as principal, in the organization of --organization. @throws UsageError without one of them */
  asUser(): Promise<CallOptions>;
  /** The user of --as as principal, or without it the operator, in the organization of --organization. */
  asUserOrOperator(): Promise<CallOptions>;
  print<T extends object>(rows: readonly T[], columns: readonly Column<T>[]): void;
  /** `option` is the name of the option that takes the cursor of the next page, for example "--after". */
  printPage<T extends object>(page: Page<T, string | number>, columns: readonly Column<T>[], option: string): void;
  /** Prints `record` as JSON with --json, otherwise `shown`, which has values formatted for people. */
  printRecord(record: object, shown?: object): void;
  /** Prints `record` as JSON with --json, otherwise the text as it is, but for control characters. */
  printText(text: string, record: object): void;
  /** The same for JSON text, which is printed so that no value of it changes. */
  printJson(text: string, record: object): void;
  /** All of standard input. `prompt` is printed on standard error if a person types it. */
  readInput(prompt: string): Promise<Buffer>;
  /** Prints a sentence on standard error, so that standard output holds only the result. */
  note(sentence: string): void;
  close(): void;
}

const OPERATOR_NAME = /^\w[\w.@-]{0,63}$/;

export function makeContext(program: Command, env: Env): Context {
  const options = (): GlobalOptions => program.opts<GlobalOptions>();
  const dataFolder = (): string => {
    const { DATA_DIR } = readConfig({ DATA_DIR: commonConfig('admin').DATA_DIR }, env);
    requireOwnFolder(DATA_DIR);
    return DATA_DIR;
  };
  const keyFolder = (): string => keyFolderOf(dataFolder());
  const files = (): IdentityFiles => {
    const config = readConfig(commonConfig('admin'), { ...env, LOG_LEVEL: undefined, DRAIN_MS: undefined });
    requireOwnFolder(config.DATA_DIR);
    return identityFiles(name(), config);
  };
  const operatorNamed = (given: string): string => {
    if (!OPERATOR_NAME.test(given))
      throw new UsageError(`${given} is not a valid operator name; it may have letters, digits and . _ @ -`);
    return `operator:${given}`;
  };
  const name = (): string => {
    const given = options().operator;
    return given === undefined ? operatorName() : operatorNamed(given);
  };
  let operator: Operator | undefined;
  const connected = (): Operator => (operator ??= openOperator({ name: name(), files: files(), addresses: env }));

  const organization = async (): Promise<CallOptions> => {
    const idOrName = options().organization;
    if (!idOrName) throw new UsageError('The option --organization <name-or-id> is required');
    const found = await connected().client(AuthServiceService, 'auth').getOrganization({ idOrName }, connected().as());
    return connected().as((found.organization as Organization).id);
  };
  const assume = async (email: string): Promise<CallOptions> => {
    const { principal } = await connected()
      .client(AuthServiceService, 'auth')
      .assumeUser({ email }, await organization());
    if (!principal) throw new Error('auth returned no principal');
    return connected().asPrincipal(principal);
  };
  // a pipe has no width
  const width = (): number =>
    (!options().wide && (Number(env.COLUMNS) || process.stdout.columns)) || Number.POSITIVE_INFINITY;
  const write = (text: string): void => void process.stdout.write(`${text}\n`);
  const asJson = (value: object): string => jsonOf(value, true);
  const print: Context['print'] = (rows, columns) =>
    write(options().json ? asJson(rows) : tableOf(rows, columns, width()));
  const note = (sentence: string): void => void process.stderr.write(`${textOf(sentence)}\n`);

  return {
    keyFolder,
    masterKeyFile: () =>
      readConfig({ MASTER_KEY_FILE: masterKeyFile }, env).MASTER_KEY_FILE || masterKeyFileOf(keyFolder()),
    embeddedFiles() {
      const server = URLS.find((setting) => env[setting]);
      if (server)
        throw new StartError(`${server} is set, but only embedded databases are backed up so: see docs/operations.md`);
      const { EVENTS_FILE } = readConfig({ EVENTS_FILE: eventsFile }, env);
      const folder = dataFolder();
      return { folder, eventsFile: EVENTS_FILE || join(folder, 'events.db') };
    },
    clusterSecrets: () => openClusterSecrets(env),
    pathOf: (file) => typedPath(file, env),
    operatorName: name,
    operatorNamed,
    client: (definition, process) => connected().client(definition, process),
    clients: async (definition, process) => connected().clients(definition, process),
    gatewayUrls: () =>
      (env.GATEWAY_ADDRESS ?? env.GATEWAY_LISTEN ?? PROCESSES.gateway)
        .split(',')
        .map((address) => `${env.GATEWAY_TLS_CERT_FILE ? 'https' : 'http'}://${address}`),
    asOperator: () => connected().as(),
    asOperatorIn: (organizationId) => connected().as(organizationId),
    async onOrganization() {
      if (options().as)
        throw new UsageError(
          '--as applies only to agent run and the token commands; all other commands act as the operator',
        );
      return organization();
    },
    async asUser() {
      const email = options().as;
      if (!email)
        throw new UsageError('Token commands act as a security administrator; the option --as <email> is required');
      return assume(email);
    },
    asUserOrOperator() {
      const email = options().as;
      return email ? assume(email) : organization();
    },
    print,
    printPage({ rows, next }, columns, option) {
      print(rows, columns);
      if (next !== undefined) note(`There are more: ${option} ${next}`);
    },
    printRecord: (record, shown = record) => write(options().json ? asJson(record) : linesOf(shown)),
    printText: (text, record) => write(options().json ? asJson(record) : textOf(text)),
    printJson: (text, record) => write(options().json ? asJson(record) : jsonTextOf(text)),
    async readInput(prompt) {
      if (process.stdin.isTTY) note(prompt);
      return buffer(process.stdin);
    },
    note,
    close: () => operator?.close(),
  };
}
