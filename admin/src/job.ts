import { Command } from 'commander';
import { JobServiceService } from 'proto/platform/v1/jobs.ts';
import type { ProcessName } from 'platform/core/processes.ts';
import type { Context } from './context.ts';
import { sumOfRounds } from 'platform/jobs/job-service.ts';
import { ServiceError } from 'platform/core/errors.ts';

const SERVICES: readonly ProcessName[] = ['auth', 'agents', 'memory', 'credits'];

const listOf = async (context: Context, service: ProcessName) =>
  (await context.client(JobServiceService, service).listJobs({}, context.asOperator())).jobs.map((job) => ({
    service,
    ...job,
  }));

/** Asks every replica: a job under a lease runs on the one that holds it. A replica that does not answer is told of when no other ran it. */
async function roundOf(context: Context, service: ProcessName, name: string): Promise<{ ran: boolean; count: number }> {
  const asked = await Promise.allSettled(
    context.clients(JobServiceService, service).map((replica) => replica.runJob({ name }, context.asOperator())),
  );
  const round = sumOfRounds(asked.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : [])));
  for (const each of asked)
    if (each.status === 'rejected' && !(round.ran && (each.reason as ServiceError).reason === 'UNAVAILABLE'))
      throw each.reason;
  return round;
}

/** One round of a job, in every service that has one of this name; "memory/relay" in one service. Prints what each did. */
export async function runJobs(context: Context, name: string): Promise<void> {
  const [service, job] = name.includes('/') ? (name.split('/', 2) as [string, string]) : ['', name];
  const found = (await Promise.all(SERVICES.map((each) => listOf(context, each))))
    .flat()
    .filter((row) => row.name === job && (service === '' || row.service === service));
  if (found.length === 0) throw new ServiceError('NOT_FOUND', `There is no job "${name}"; job list shows them`);
  const rounds = await Promise.all(
    found.map(async (row) => ({
      job: `${row.service}/${row.name}`,
      ...(await roundOf(context, row.service, row.name)),
    })),
  );
  context.print(rounds, [
    { title: 'Job', value: (row) => row.job },
    { title: 'Ran', value: (row) => (row.ran ? 'yes' : 'no, another replica holds it') },
    { title: 'Done', value: (row) => row.count },
  ]);
}

export function jobCommand(context: Context): Command {
  const command = new Command('job').description('what the services do by themselves: reapers, sweepers, relays');
  command
    .command('list')
    .description('list the jobs of every service')
    .action(async () =>
      context.print((await Promise.all(SERVICES.map((service) => listOf(context, service)))).flat(), [
        { title: 'Job', value: (row) => `${row.service}/${row.name}`, keep: true },
        { title: 'Every', value: (row) => (row.intervalMs === 0 ? 'when asked' : `${row.intervalMs / 1000} s`) },
        { title: 'What it does', value: (row) => row.description },
      ]),
    );
  command
    .command('run <name>')
    .description(
      'run one round now: "reaper", or "memory/relay" where several services have one; "relay" alone runs them all',
    )
    .action((name: string) => runJobs(context, name));
  return command;
}
