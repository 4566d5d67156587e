import { join } from 'node:path';

export const ENGINES_FOLDER = join(import.meta.dirname, '../../.engines');

/** Where a server is installed, keeps its data and listens. */
export interface ServerLocation {
  /** Folder of the installations (`.engines`). */
  engines: string;
  /** The server's own data folder, which exists already. */
  data: string;
  /** Loopback port. The port above it is reserved for this server, too. */
  port: number;
}

/** How to start a server and how to find out whether it answers. */
export interface ServerSpec {
  key: 'mongodb' | 'redis' | 'kafka';
  name: string;
  /** The setting by which the services find it. */
  setting: 'MONGODB_URL' | 'REDIS_URL' | 'KAFKA_BROKERS';
  url(port: number): string;
  /** Creates the files that the server needs; called before every start. */
  prepare(location: ServerLocation): Promise<void>;
  /** Program and arguments. The arguments contain the data folder, so that they identify the process. */
  command(location: ServerLocation): readonly string[];
  /** Resolves to true once a client can use the server; before, rejects or resolves to false. */
  answers(port: number): Promise<boolean>;
}
