import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { loadSync, type PackageDefinition } from '@grpc/proto-loader';

/** Folder of the .proto files. They are also read at run time: routes and method options come from them. */
export const PROTO_ROOT = join(import.meta.dirname, '../../../proto');

/** Our own .proto files, relative to PROTO_ROOT: every `<package>/v1/*.proto`. */
export const protoFiles = (): string[] =>
  readdirSync(PROTO_ROOT, { recursive: true, encoding: 'utf8' })
    .filter((file) => /^\w+\/v\d+\/\w+\.proto$/.test(file))
    .sort();

let loaded: PackageDefinition | undefined;

/** All messages and services, as @grpc/proto-loader describes them; read once per process. */
export const packageDefinition = (): PackageDefinition =>
  (loaded ??= loadSync(protoFiles(), {
    includeDirs: [PROTO_ROOT],
    keepCase: false,
    longs: Number,
    enums: String,
    arrays: true,
  }));
