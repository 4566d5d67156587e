import { after, countOf, runClosedLoop } from '../load/closed-loop.ts';
import { runFixedRate } from '../load/fixed-rate.ts';
import { SCENARIOS, type Scenario } from '../load/scenarios.ts';
import { untilDrained } from '../measure/drain.ts';
import { figure, noFindings, printTable, type Findings } from '../measure/report.ts';
import { measureRound, totalCpu, warmUp } from '../measure/round.ts';
import type { Settings } from '../settings.ts';
import { targetOf, type System } from '../systems/system.ts';

const SHARE_OF_CAPACITY = 0.6;

/** Each system at 60 % of the throughput that it has just shown. Latencies count from when a request was due. */
export async function measureFixedRate(systems: readonly System[], settings: Settings): Promise<Findings> {
  const findings = noFindings();
  const rows: string[][] = [];
  for (const name of ['get', 'list', 'create', 'run']) {
    const scenario = SCENARIOS[name] as Scenario;
    const cells: string[] = [];
    for (const system of systems) {
      const target = targetOf(system, scenario);
      findings.failures.push(...(await warmUp(system, scenario, settings)));
      const shown = await runClosedLoop(target, settings.connections, after(settings.seconds));
      if (system.records) await untilDrained(system.records);
      const rate = (SHARE_OF_CAPACITY * countOf(shown)) / shown.seconds;
      const round = await measureRound(system, () => runFixedRate(target, rate, settings.rounds * settings.seconds));
      cells.push(
        `${figure(rate, 0)}/s: ${figure(round.p50Ms)} / ${figure(round.p99Ms)} (${figure(totalCpu(round), 0)})`,
      );
      findings.figures[`${system.name} ${name} fixed-rate p99 ms`] = round.p99Ms;
      findings.failures.push(...shown.failures, ...round.failures);
    }
    rows.push([scenario.title, ...cells]);
  }
  process.stdout.write('\n');
  printTable(['60 % of capacity: p50 / p99 ms (CPU µs)', ...systems.map(({ name }) => name)], rows);
  return findings;
}
