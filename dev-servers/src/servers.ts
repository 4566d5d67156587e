import { kafka } from './kafka.ts';
import { mongodb } from './mongodb.ts';
import type { Recipe } from './server-spec.ts';
import { redis } from './redis.ts';

export const SERVERS: readonly Recipe[] = [mongodb, redis, kafka];

/** For `eval`: the settings of the services, as lines of a shell. */
export const exportsOf = (urlOf: (recipe: Recipe) => string): string =>
  SERVERS.map((recipe) => `export ${recipe.setting}='${urlOf(recipe)}'\n`).join('');
