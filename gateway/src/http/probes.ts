import { unavailable } from 'platform/core/errors.ts';
import type { LocalEntry } from '../contract/routes.ts';

const ok = (status: string) => ({ status: 200, body: JSON.stringify({ status }) });

/**
 * For probes, without a token: does the process turn, and does it take requests? Neither follows a dependency: when one
 * is down, every gateway would be, and a 503 in JSON says more than a refused connection.
 */
export const probes = (isDraining: () => boolean): LocalEntry[] => [
  { verb: 'GET', template: '/healthz', route: { kind: 'local', reply: () => ok('ok') } },
  {
    verb: 'GET',
    template: '/readyz',
    route: {
      kind: 'local',
      reply() {
        if (isDraining()) throw unavailable('The gateway stops', 'readyz');
        return ok('ready');
      },
    },
  },
];
