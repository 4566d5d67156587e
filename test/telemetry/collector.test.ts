import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { JobServiceService } from 'proto/platform/v1/jobs.ts';
import { keyFolderOf } from 'platform/rpc/keys.ts';
import { openOperator } from 'platform/rpc/operator.ts';
import { closedInTheEnd, eventually } from 'platform/service/test-end.ts';
import { layOutKeys, temporaryFolder } from 'platform/service/testing.ts';
import { freeAddresses } from '../support/addresses.ts';
import { startOtlpReceiver, type OtlpReceiver } from '../support/otlp-receiver.ts';
import { exitOf } from '../support/run-process.ts';
import { NO_ENGINES } from '../support/shared-engines.ts';
import { REPOSITORY } from '../support/stack.ts';

const REPORTS = { NODE_OPTIONS: `--import ${join(REPOSITORY, 'test/support/report-opentelemetry.ts')}` };
/** Longer than a process may take to stop: whoever waited for the collector would be ended with code 1. */
const PATIENT = { OTEL_EXPORTER_OTLP_TIMEOUT: '60000', DRAIN_MS: '2000' };

interface Running {
  child: ChildProcess;
  output(): string;
  /** Makes one call, which resolves when it is answered. */
  call(): Promise<unknown>;
}

/** Starts the memory service alone, which answers an operator. */
async function startMemory(env: Record<string, string>): Promise<Running> {
  const folder = temporaryFolder();
  closedInTheEnd(() => folder.remove());
  const keyFolder = keyFolderOf(folder.path);
  await layOutKeys(keyFolder);
  const addresses = await freeAddresses();
  const child = spawn(process.execPath, [join(REPOSITORY, 'services/memory/src/main.ts')], {
    env: { ...process.env, ...NO_ENGINES, ...addresses, ...REPORTS, DATA_DIR: folder.path, LOG_LEVEL: 'warn', ...env },
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  });
  closedInTheEnd(() => child.kill('SIGKILL'));
  let printed = '';
  child.stderr!.on('data', (chunk: Buffer) => (printed += chunk.toString()));
  expect(await once(child, 'message')).toEqual([expect.objectContaining({ ready: addresses.MEMORY_LISTEN })]);
  const operator = openOperator({ keyFolder, addresses });
  closedInTheEnd(() => operator.close());
  const client = operator.client(JobServiceService, 'memory');
  return { child, output: () => printed, call: () => client.listJobs({}, operator.as()) };
}

async function stop({ child }: Running): Promise<unknown> {
  child.kill('SIGTERM');
  return exitOf(child);
}

describe('a process', () => {
  it('loads nothing of OpenTelemetry while it has no endpoint', async () => {
    const memory = await startMemory({ OTEL_TRACES_SAMPLER: 'always_on' });
    await memory.call();
    expect(await stop(memory)).toEqual([0, null]);
    expect(memory.output()).toBe('');
  });

  it('answers and ends as ever while its collector takes spans and never says so', async () => {
    const silent = await startOtlpReceiver({ isSilent: true });
    const memory = await startMemory({ ...traced(silent), ...PATIENT, OTEL_BSP_MAX_QUEUE_SIZE: '8' });
    expect(memory.output()).toContain('OpenTelemetry is loaded');
    await memory.call();
    await eventually(() => silent.received.length > 0);
    for (let n = 0; n < 50; n++) await memory.call();
    expect(await stop(memory)).toEqual([0, null]);
  });

  it('answers and ends as ever while nobody is at the endpoint, and says so once', async () => {
    const [nobody] = Object.values(await freeAddresses());
    const memory = await startMemory({
      ...{ ...PATIENT, OTEL_EXPORTER_OTLP_ENDPOINT: `http://${nobody}`, OTEL_TRACES_SAMPLER: 'always_on' },
      ...{ OTEL_BSP_SCHEDULE_DELAY: '10', OTEL_EXPORTER_OTLP_TIMEOUT: '100' },
    });
    await memory.call();
    await eventually(() => memory.output().includes('traces are lost'));
    await memory.call();
    expect(await stop(memory)).toEqual([0, null]);
    expect(memory.output().match(/traces are lost/g)).toHaveLength(1);
  });

  it('sends the spans of its last calls before it ends', async () => {
    const receiver = await startOtlpReceiver();
    const memory = await startMemory({ ...traced(receiver), OTEL_BSP_SCHEDULE_DELAY: '60000' });
    await memory.call();
    expect(receiver.received).toEqual([]);
    expect(await stop(memory)).toEqual([0, null]);
    expect(receiver.spans.map(({ service, name }) => [service, name])).toContainEqual([
      'memory',
      'platform.v1.JobService/ListJobs',
    ]);
  });
});

const traced = ({ url }: OtlpReceiver) => ({
  OTEL_EXPORTER_OTLP_ENDPOINT: url,
  OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
  OTEL_TRACES_SAMPLER: 'always_on',
  OTEL_BSP_SCHEDULE_DELAY: '10',
});
