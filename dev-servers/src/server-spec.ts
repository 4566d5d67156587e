import { join } from 'node:path';

export const ENGINES_FOLDER = join(import.meta.dirname, '../../.engines');

/** One server: where it is installed, where its data is, where it listens. */
export interface Place {
  /** Folder of what was installed (`.engines`). */
  engines: string;
  /** Folder of its own, made by who starts it. */
  data: string;
  /** Loopback port; the one above it is this server's, too. */
  port: number;
}

/** How a server is started and asked. */
export interface Recipe {
  key: 'mongodb' | 'redis' | 'kafka';
  name: string;
  /** The setting of a service that names it. */
  setting: 'MONGODB_URL' | 'REDIS_URL' | 'KAFKA_BROKERS';
  url(port: number): string;
  /** What must be there before its first start. */
  prepare(place: Place): Promise<void>;
  /** Program and arguments; the arguments hold the data folder, by which the process is known again. */
  command(place: Place): readonly string[];
  /** Rejects, or resolves to false, until it answers as a client needs it. */
  answers(port: number): Promise<boolean>;
}
