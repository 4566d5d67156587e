import type { ListJobsResponse, RunJobRequest, RunJobResponse } from 'proto/platform/v1/jobs.ts';
import { ServiceError } from '../core/errors.ts';
import type { JobRunner } from './jobs.ts';

export async function listJobs(runner: JobRunner): Promise<ListJobsResponse> {
  return { jobs: runner.list().map(({ name, description, intervalMs = 0 }) => ({ name, description, intervalMs })) };
}

/** @throws ServiceError NOT_FOUND for a name that this service has no job of */
export async function runJob(runner: JobRunner, { name }: RunJobRequest): Promise<RunJobResponse> {
  if (!runner.list().some((job) => job.name === name))
    throw new ServiceError('NOT_FOUND', `This service has no job "${name}"`);
  return runner.runNow(name);
}

/** One round of a job as all replicas together had it: under a lease one of them ran it. */
export const sumOfRounds = (rounds: readonly RunJobResponse[]): RunJobResponse => ({
  ran: rounds.some(({ ran }) => ran),
  count: rounds.reduce((sum, { count }) => sum + count, 0),
});
