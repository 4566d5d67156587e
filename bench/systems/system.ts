import type { Address } from '../load/connection.ts';
import type { Access } from '../load/requests.ts';
import type { Target } from '../load/closed-loop.ts';
import { nextOf, runsAsCreates, type Scenario } from '../load/scenarios.ts';
import type { Records } from './records.ts';

/** What is measured: the baseline, stock express-gateway, or the product on one set of engines. */
export interface System {
  name: string;
  /** Connections take them in turn. */
  addresses: readonly Address[];
  /** Tokens, and the objects that they may read. */
  accessesOf(scenario: Scenario): readonly Access[];
  /** Where the product runs an agent, a system that runs none creates an object: a run is compared with that. */
  runsAgents: boolean;
  /** Process ids by the name of the program; several if it has replicas. */
  pids: Readonly<Record<string, readonly number[]>>;
  /** CPU time so far of each process, or of several alike, in microseconds. */
  cpu(): Record<string, number>;
  /** Proportional set size of all processes, in MB. */
  pssMb(): number;
  /** What its changes have left behind; undefined for a system that has no events. */
  records?: Records;
  stop(): Promise<void>;
}

/** What a system is asked in a scenario. */
export const scenarioOf = ({ runsAgents }: Pick<System, 'runsAgents'>, scenario: Scenario): Scenario =>
  runsAgents ? scenario : runsAsCreates(scenario);

export const targetOf = (system: System, scenario: Scenario): Target => ({
  addresses: system.addresses,
  next: nextOf(scenarioOf(system, scenario), system.accessesOf(scenario)),
});

export const addressOf = (url: string): Address => {
  const { hostname, port } = new URL(url);
  return { host: hostname, port: Number(port) };
};
