import { loadavg } from 'node:os';
import { median } from '../load/latencies.ts';
import type { Scenario } from '../load/scenarios.ts';
import { medianOf, printRounds, ratioName, type Findings } from '../measure/report.ts';
import { activeShare, closedRound, totalCpu, warmUp, type Round } from '../measure/round.ts';
import type { Settings } from '../settings.ts';
import { scenarioOf, type System } from '../systems/system.ts';

/** How a round is measured, and what a title says of its load. */
export interface Measurement {
  roundOf: typeof closedRound;
  load: string;
}
const closedLoop = ({ connections }: Settings): Measurement => ({
  roundOf: closedRound,
  load: `${connections} connections`,
});

/**
 * Measures each scenario in rounds that alternate between the systems.
 * @param how one round is measured, and by what load; by default a closed loop
 */
export async function compare(
  systems: readonly System[],
  scenarios: readonly Scenario[],
  settings: Settings,
  { roundOf, load }: Measurement = closedLoop(settings),
): Promise<Findings> {
  const findings: Findings = { figures: {}, failures: [] };
  for (const scenario of scenarios) {
    for (const system of systems) findings.failures.push(...(await warmUp(system, scenario, settings)));
    const rounds = await interleaved(systems, settings, scenario, roundOf);
    printRounds(`${scenario.title}, ${load}, ${settings.rounds} × ${settings.seconds} s`, rounds);
    process.stderr.write(`load of the machine: ${loadavg().map(String).join(' ')}\n`);
    const byName = systems.map((system) => ({
      name: `${system.name} ${scenarioOf(system, scenario).name}`,
      rounds: rounds.filter((round) => round.system === system.name),
    }));
    for (const { name, rounds } of byName) Object.assign(findings.figures, figuresOf(name, rounds));
    Object.assign(findings.figures, ratiosOf(byName));
    findings.failures.push(...rounds.flatMap(({ failures }) => failures));
  }
  return findings;
}

/** Rounds that alternate between the systems. */
export async function interleaved(
  systems: readonly System[],
  settings: Settings,
  scenario: Scenario,
  roundOf = closedRound,
): Promise<Round[]> {
  const rounds: Round[] = [];
  for (let round = 0; round < settings.rounds; round++)
    for (const system of systems) rounds.push(await roundOf(system, scenario, settings));
  return rounds;
}

const RATIO_FIGURES: Readonly<Record<string, (round: Round) => number>> = {
  cpu: totalCpu,
  'req/s': ({ requestsPerSecond }) => requestsPerSecond,
};

/**
 * For each pair of systems, the median of the ratios of rounds that ran beside each other: what else the machine does
 * changes slowly, so it hardly affects such a ratio.
 */
export function ratiosOf(systems: readonly { name: string; rounds: readonly Round[] }[]): Record<string, number> {
  const ratios: Record<string, number> = {};
  for (const [figure, of] of Object.entries(RATIO_FIGURES))
    for (const one of systems)
      for (const other of systems)
        if (one !== other)
          ratios[ratioName(`${one.name} ${figure}`, `${other.name} ${figure}`)] = median(
            one.rounds.map((round, index) => of(round) / of(other.rounds[index] as Round)),
          );
  return ratios;
}

/** The figures that goals name. */
function figuresOf(name: string, rounds: readonly Round[]): Record<string, number> {
  const drained = rounds.flatMap((round) => round.drained ?? []);
  return {
    [`${name} cpu`]: medianOf(rounds, totalCpu),
    [`${name} req/s`]: medianOf(rounds, ({ requestsPerSecond }) => requestsPerSecond),
    [`${name} auth cpu`]: medianOf(rounds, ({ cpu }) => cpu.auth ?? Number.NaN),
    [`${name} busy`]: medianOf(rounds, ({ busiest }) => activeShare(busiest)),
    [`${name} pss`]: Math.max(...rounds.map(({ pssMb }) => pssMb)),
    ...(drained.length > 0 && { [`${name} drain s`]: median(drained.map(({ tookMs }) => tookMs)) / 1000 }),
  };
}
