import { kafka } from './kafka.ts';
import { mongodb } from './mongodb.ts';
import type { ServerSpec } from './server-spec.ts';
import { redis } from './redis.ts';

export const SERVERS: readonly ServerSpec[] = [mongodb, redis, kafka];

/** Shell lines that export the settings of the services. */
export const exportsOf = (urlOf: (spec: ServerSpec) => string): string =>
  SERVERS.map((spec) => `export ${spec.setting}='${urlOf(spec)}'\n`).join('');
