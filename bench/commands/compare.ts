import { loadavg } from 'node:os';
import { median } from '../load/latencies.ts';
import type { Scenario } from '../load/scenarios.ts';
import { medianOf, printRounds, type Findings } from '../measure/report.ts';
import { activeShare, closedRound, totalCpu, warmUp, type Round } from '../measure/round.ts';
import type { Settings } from '../settings.ts';
import type { System } from '../systems/system.ts';

/** Measures each scenario in rounds that alternate between the systems. */
export async function compare(
  systems: readonly System[],
  scenarios: readonly Scenario[],
  settings: Settings,
): Promise<Findings> {
  const findings: Findings = { figures: {}, failures: [] };
  for (const scenario of scenarios) {
    for (const system of systems) findings.failures.push(...(await warmUp(system, scenario, settings)));
    const rounds = await interleaved(systems, settings, scenario);
    const { connections, seconds } = settings;
    printRounds(`${scenario.title}, ${connections} connections, ${settings.rounds} × ${seconds} s`, rounds);
    process.stderr.write(`load of the machine: ${loadavg().map(String).join(' ')}\n`);
    for (const { name } of systems)
      Object.assign(
        findings.figures,
        figuresOf(
          `${name} ${scenario.name}`,
          rounds.filter(({ system }) => system === name),
        ),
      );
    findings.failures.push(...rounds.flatMap(({ failures }) => failures));
  }
  return findings;
}

/** Rounds that alternate between the systems. */
export async function interleaved(
  systems: readonly System[],
  settings: Settings,
  scenario: Scenario,
): Promise<Round[]> {
  const rounds: Round[] = [];
  for (let round = 0; round < settings.rounds; round++)
    for (const system of systems) rounds.push(await closedRound(system, scenario, settings));
  return rounds;
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
