/** Jobs of workflows and the messages about them. */

import type { JobMessage } from './message-queue.js';
import type { Job, Runner } from './records.js';

/** Returns the request id that messages of the job contain; github.com sends 0 for jobs that it assigns itself. */
export function requestIdOf(job: Job, assignment: 'direct' | 'acquire'): number {
  return assignment === 'direct' ? 0 : job.number;
}

/**
 * Returns a message with the fields that the job has so far. github.com has no `queueTime` in `JobAssigned`: see the
 * README for the source.
 */
export function messageAbout(job: Job, messageType: string, assignment: 'direct' | 'acquire'): JobMessage {
  const { request, scaleSetAssignTime, runnerAssignTime, finishTime } = job;
  const { workflow = 'ci.yml', displayName = 'build', eventName = 'push' } = request;
  const hasQueueTime = assignment === 'acquire' || messageType !== 'JobAssigned';
  return {
    messageType,
    runnerRequestId: requestIdOf(job, assignment),
    repositoryName: job.repository,
    ownerName: job.owner,
    jobId: job.jobId,
    jobWorkflowRef: `${job.owner}/${job.repository}/.github/workflows/${workflow}@refs/heads/main`,
    jobDisplayName: displayName,
    workflowRunId: job.runId,
    eventName,
    requestLabels: request.labels,
    ...(hasQueueTime ? { queueTime: job.queueTime } : {}),
    ...(scaleSetAssignTime === undefined ? {} : { scaleSetAssignTime }),
    ...(runnerAssignTime === undefined ? {} : { runnerAssignTime }),
    ...(finishTime === undefined ? {} : { finishTime }),
  };
}

/** Returns the fields of messages that name the runner: id 0 and an empty name if there is none. */
export function runnerFields(runner: Runner | undefined): { readonly runnerId: number; readonly runnerName: string } {
  return { runnerId: runner?.id ?? 0, runnerName: runner?.name ?? '' };
}
