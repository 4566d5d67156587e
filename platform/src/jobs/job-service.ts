import type { ListJobsResponse, RunJobRequest, RunJobResponse } from 'proto/platform/v1/jobs.ts';
import { requireText, ServiceError } from '../core/errors.ts';
import type { JobRunner } from './jobs.ts';

export async function listJobs(runner: JobRunner): Promise<ListJobsResponse> {
  const jobs = runner.list().map(({ name, description, intervalMs = 0, everyReplica = false }) => {
    return { name, description, intervalMs, everyReplica };
  });
  return { jobs };
}

/** @throws ServiceError NOT_FOUND when this service has no job of this name */
export async function runJob(runner: JobRunner, { name }: RunJobRequest): Promise<RunJobResponse> {
  requireText('name', name);
  if (!runner.list().some((job) => job.name === name))
    throw new ServiceError('NOT_FOUND', `This service has no job "${name}"`);
  return runner.runNow(name);
}

/** The result of one round that every replica was asked for; of a job under a lease only one replica ran it. */
export const sumOfRounds = (rounds: readonly RunJobResponse[]): RunJobResponse => ({
  ran: rounds.some(({ ran }) => ran),
  count: rounds.reduce((sum, { count }) => sum + count, 0),
});
