import { Command } from 'commander';
import { JobServiceService } from 'proto/platform/v1/jobs.ts';
import type { ProcessName } from 'platform/processes.ts';
import type { Context } from './context.ts';
import { ServiceError } from 'platform/errors.ts';

const SERVICES: readonly ProcessName[] = ['auth', 'agents', 'memory', 'credits'];

export function jobCommand(context: Context): Command {
  const jobsOf = (service: ProcessName) => context.client(JobServiceService, service);
  const listOf = async (service: ProcessName) => (await jobsOf(service).listJobs({}, context.asOperator())).jobs.map((job) => ({ service, ...job }));
  const command = new Command('job').description('what the services do by themselves: reapers, sweepers, relays');
  command.command('list').description('list the jobs of every service')
    .action(async () =>
      context.print((await Promise.all(SERVICES.map(listOf))).flat(), [
        { title: 'Job', value: (row) => `${row.service}/${row.name}`, keep: true },
        { title: 'Every', value: (row) => `${row.intervalMs / 1000} s` },
        { title: 'What it does', value: (row) => row.description },
      ]));
  command.command('run <name>').description('run one round now: "reaper", or "memory/relay" where several services have one; "relay" alone runs them all')
    .action(async (name: string) => {
      const [service, job] = name.includes('/') ? (name.split('/', 2) as [string, string]) : ['', name];
      const found = (await Promise.all(SERVICES.map(listOf))).flat().filter((row) => row.name === job && (service === '' || row.service === service));
      if (found.length === 0) throw new ServiceError('NOT_FOUND', `There is no job "${name}"; job list shows them`);
      const rounds = await Promise.all(found.map(async (row) => ({ job: `${row.service}/${row.name}`, ...(await jobsOf(row.service).runJob({ name: row.name }, context.asOperator())) })));
      context.print(rounds, [
        { title: 'Job', value: (row) => row.job },
        { title: 'Ran', value: (row) => (row.ran ? 'yes' : 'no, another replica holds it') },
        { title: 'Done', value: (row) => row.count },
      ]);
    });
  return command;
}
