import type { Declaration } from 'platform/core/config.ts';
import type { ProcessName } from 'platform/core/processes.ts';
import { allMethodOptions } from 'platform/rpc/method-options.ts';
import { declarationOf } from 'platform/service/program.ts';
import { audiences, config as gatewayConfig } from '../../gateway/src/config.ts';
import { program as agents } from '../../services/agents/src/service.ts';
import { program as auth } from '../../services/auth/src/service.ts';
import { program as credits } from '../../services/credits/src/service.ts';
import { program as memory } from '../../services/memory/src/service.ts';

/** What a program declares of itself, with which the manifests must agree. */
export interface Declared {
  name: ProcessName;
  settings: Declaration;
  calls: readonly string[];
  /** Full names of its gRPC services, which its health service knows. */
  serves: readonly string[];
}

const servedBy = (name: string): string[] => [
  ...new Set(
    [...allMethodOptions().keys()]
      .map((path) => path.split('/')[1] as string)
      .filter((each) => each.startsWith(`${name}.`)),
  ),
];

export const PROGRAMS: readonly Declared[] = [
  { name: 'gateway', settings: gatewayConfig, calls: audiences(), serves: [] },
  ...[auth, agents, memory, credits].map((program) => ({
    name: program.name,
    settings: declarationOf(program as never),
    calls: program.calls,
    serves: servedBy(program.name),
  })),
];

/** Settings that fall back on this machine or its files, which a pod must not. */
export const requiredIn = ({ settings }: Declared): string[] =>
  Object.entries(settings)
    .filter(
      ([name, { default: value, description }]) =>
        /empty: .*(DATA_DIR|EVENTS_FILE|embedded)/.test(description) ||
        String(value).includes('127.0.0.1') ||
        name.endsWith('_HEALTH_LISTEN'),
    )
    .map(([name]) => name)
    // with Kafka there is no such file
    .filter((name) => name !== 'EVENTS_FILE');
