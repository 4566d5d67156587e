import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { addCommonProtos, loadProtosWithOptionsSync } from '@grpc/proto-loader/build/src/util.js';

/** Folder of the .proto files. They are also read at run time: routes and method options come from them. */
export const PROTO_ROOT = join(import.meta.dirname, '../../../proto');

/** Our own .proto files, relative to PROTO_ROOT: every `<package>/v1/*.proto`. */
export const protoFiles = (): string[] =>
  readdirSync(PROTO_ROOT, { recursive: true, encoding: 'utf8' })
    .filter((file) => /^\w+\/v\d+\/\w+\.proto$/.test(file))
    .sort();

/** protobufjs drops comments that begin with two slashes unless it is asked. Of proto-loader's options it has none. */
const COMMENTS = { alternateCommentMode: true } as object;

type Root = ReturnType<typeof loadProtosWithOptionsSync>;
type Service = ReturnType<Root['lookupService']>;

export interface DeclaredMethod {
  /** "/memory.v1.MemoryService/ListMemoryTypes" */
  path: string;
  /** Full name of the option, such as "(google.api.http)", -> its value. */
  options: Readonly<Record<string, unknown>>;
  /** As protobufjs describes it. */
  method: Service['methods'][string];
}

let methods: readonly DeclaredMethod[] | undefined;

/**
 * The methods of all services; read once per process. proto-loader's function for this makes descriptors and codecs of
 * all messages, too, which nothing here uses and which take as long again as reading the files.
 */
export function declaredMethods(): readonly DeclaredMethod[] {
  if (methods) return methods;
  addCommonProtos(); // google/protobuf/descriptor.proto, which ours import
  const root = loadProtosWithOptionsSync(protoFiles(), { includeDirs: [PROTO_ROOT], ...COMMENTS });
  methods = servicesBelow(root).flatMap((service) =>
    service.methodsArray.map((method) => ({
      path: `/${service.fullName.slice(1)}/${method.name}`,
      // protobufjs wrongly types it as one object
      options: Object.assign({}, ...((method.parsedOptions ?? []) as unknown as object[])) as Record<string, unknown>,
      method,
    })),
  );
  return methods;
}

const servicesBelow = ({ nestedArray }: Pick<Root, 'nestedArray'>): Service[] =>
  nestedArray.flatMap((one) => {
    if ('methodsArray' in one) return [one as Service];
    return 'nestedArray' in one ? servicesBelow(one as Root) : [];
  });
