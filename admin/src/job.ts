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

/**
 * Runs one round of a job. Calls every replica, because a job with a lease runs only on the replica that holds the
 * lease.
 * @throws ServiceError of a replica; an unavailable replica is ignored if another one ran the job
 */
async function runOnReplicas(
  context: Context,
  service: ProcessName,
  name: string,
): Promise<{ ran: boolean; count: number }> {
  const replicas = await context.clients(JobServiceService, service);
  const outcomes = await Promise.allSettled(replicas.map((replica) => replica.runJob({ name }, context.asOperator())));
  const round = sumOfRounds(outcomes.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : [])));
  for (const each of outcomes)
    if (each.status === 'rejected' && !(round.ran && (each.reason as ServiceError).reason === 'UNAVAILABLE'))
      throw each.reason;
  return round;
}

/**
 * Runs one round of a job and prints the results. "relay" runs the job of this name in every service that has one,
 * "memory/relay" in one service.
 * @throws ServiceError NOT_FOUND if no service has such a job
 */
export async function runJobs(context: Context, name: string): Promise<void> {
  const [service, job] = name.includes('/') ? (name.split('/', 2) as [string, string]) : ['', name];
  const found = (await Promise.all(SERVICES.map((each) => listOf(context, each))))
    .flat()
    .filter((row) => row.name === job && (service === '' || row.service === service));
  if (found.length === 0) throw new ServiceError('NOT_FOUND', `There is no job "${name}"; "job list" shows all jobs`);
  const rounds = await Promise.all(
    found.map(async (row) => ({
      job: `${row.service}/${row.name}`,
      ...(await runOnReplicas(context, row.service, row.name)),
    })),
  );
  context.print(rounds, [
    { title: 'Job', value: (row) => row.job },
    { title: 'Ran', value: (row) => (row.ran ? 'yes' : 'no, another replica holds the lease') },
    { title: 'Done', value: (row) => row.count },
  ]);
}

export function jobCommand(context: Context): Command {
  const command = new Command('job').description('background jobs of the services: reapers, sweepers, relays');
  command
    .command('list')
    .description('list the jobs of every service')
    .action(async () =>
      context.print((await Promise.all(SERVICES.map((service) => listOf(context, service)))).flat(), [
        { title: 'Job', value: (row) => `${row.service}/${row.name}`, narrowed: 'last' },
        { title: 'Every', value: (row) => (row.intervalMs === 0 ? 'on request' : `${row.intervalMs / 1000} s`) },
        { title: 'On', value: (row) => (row.everyReplica ? 'every replica' : 'one replica') },
        { title: 'What it does', value: (row) => row.description },
      ]),
    );
  command
    .command('run <name>')
    .description('run one round of a job now: "relay" in every service that has it, "memory/relay" in one service')
    .action((name: string) => runJobs(context, name));
  return command;
}
