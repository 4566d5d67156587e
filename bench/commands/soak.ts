import { statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { after, noRequests, runClosedLoop, type LoadResult } from '../load/closed-loop.ts';
import { percentile } from '../load/latencies.ts';
import type { Scenario } from '../load/scenarios.ts';
import { drain } from '../measure/drain.ts';
import { figure, noFindings, printTable, type Findings } from '../measure/report.ts';
import type { Settings } from '../settings.ts';
import { startProduct, type Product } from '../systems/product.ts';
import type { Backlog } from '../systems/records.ts';
import { targetOf } from '../systems/system.ts';

const SOAK: Scenario = {
  name: 'soak',
  title: '50 % get, 10 % list, 30 % create, 10 % run',
  organizations: 1,
  shares: { get: 50, list: 10, create: 30, run: 10 },
};
const SAMPLE_MS = 1_000;
const MB = 1_048_576;

interface Sample {
  backlog: Backlog;
  /** Of the oldest event in an outbox; undefined if it cannot be read. */
  oldestMs: number | undefined;
}

/** Constant load for minutes. Prints a row for each minute: what grows shows there. */
export async function measureSoak({ objects, connections, minutes }: Settings): Promise<Findings> {
  const product = await startProduct({ name: 'product', objects });
  const findings = noFindings();
  try {
    const records = product.records!;
    const before = await records.counts();
    const total = noRequests();
    process.stdout.write(`\nsoak: ${SOAK.title}, ${connections} connections\n\n`);
    printTable(
      ['minute', 'requests/s', 'p99 ms', 'memory MB (PSS)', 'logs MB (WAL)', 'outbox', 'oldest ms', 'audit behind'],
      [],
    );
    for (let minute = 1; minute <= minutes; minute++) {
      const { result, samples } = await oneMinute(product, connections);
      for (const kind of Object.keys(total) as (keyof typeof total)[]) total[kind] += result.succeeded[kind];
      findings.failures.push(...result.failures);
      process.stdout.write(`| ${rowOf(minute, result, samples, product).join(' | ')} |\n`);
      findings.figures['product soak pss'] = product.pssMb();
    }
    const { tookMs, failures } = await drain(records, before, total);
    findings.failures.push(...failures);
    process.stdout.write(
      `\n${total.create} creates and ${total.run} runs; the backlog drained in ${figure(tookMs / 1000)} s, ` +
        `${failures.length === 0 ? 'one audit entry for each' : failures.join(', ')}\n`,
    );
    return findings;
  } finally {
    await product.stop();
  }
}

async function oneMinute(product: Product, connections: number): Promise<{ result: LoadResult; samples: Sample[] }> {
  const samples: Sample[] = [];
  const over = after(60);
  const sampling = (async () => {
    while (!over()) {
      await delay(SAMPLE_MS);
      samples.push({ backlog: await product.records!.backlog(), oldestMs: product.records!.oldestMs() });
    }
  })();
  const result = await runClosedLoop(targetOf(product, SOAK), connections, over);
  await sampling;
  return { result, samples };
}

function rowOf(minute: number, result: LoadResult, samples: readonly Sample[], product: Product): string[] {
  const most = (of: (sample: Sample) => number | undefined): string =>
    figure(Math.max(...samples.map((sample) => of(sample) ?? Number.NaN)), 0);
  return [
    String(minute),
    figure(result.latenciesMs.length / result.seconds, 0),
    figure(percentile(result.latenciesMs, 0.99)),
    figure(product.pssMb(), 0),
    figure(logBytes(product.stack.folder) / MB),
    most(({ backlog }) => backlog.outbox),
    most(({ oldestMs }) => oldestMs),
    most(({ backlog }) => backlog.audit),
  ];
}

const logBytes = (folder: string): number =>
  ['auth', 'agents', 'memory', 'credits', 'events'].reduce(
    (sum, name) => sum + (statSync(join(folder, `${name}.db-wal`), { throwIfNoEntry: false })?.size ?? 0),
    0,
  );
