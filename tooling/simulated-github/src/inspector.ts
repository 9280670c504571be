/** Direct access to the content of the simulated GitHub. */

import type { Dispatcher } from './dispatcher.js';
import type { EventLog, LoggedEvent } from './event-log.js';
import type { Runners } from './runners.js';
import type { ScaleSets } from './scale-sets.js';
import type { GithubState } from './settings.js';
import type { Statistics } from './statistics.js';
import type { Job, JobResult, JobState, ScaleSet } from './records.js';

export interface InspectedJob {
  readonly number: number;
  readonly jobId: string;
  readonly runId: number;
  readonly repository: string;
  readonly labels: readonly string[];
  readonly state: JobState;
  readonly scaleSet: string | undefined;
  readonly runner: string | undefined;
  /** Names of the runners that have started the job. */
  readonly startedBy: readonly string[];
  readonly assignments: number;
  readonly result: JobResult | undefined;
  readonly queueTime: string;
  readonly scaleSetAssignTime: string | undefined;
  readonly runnerAssignTime: string | undefined;
  readonly finishTime: string | undefined;
}

export interface InspectedRunner {
  readonly id: number;
  readonly name: string;
  readonly scaleSet: string;
  readonly isOnline: boolean;
  /** Number of its job. */
  readonly job: number | undefined;
  readonly registeredAt: string;
}

export interface InspectedScaleSet {
  readonly id: number;
  readonly name: string;
  readonly scope: string;
  readonly labels: readonly string[];
  readonly runnerGroup: string;
  readonly session: InspectedSession | undefined;
  readonly statistics: Statistics;
  readonly undeletedMessages: readonly { readonly id: number; readonly deliveries: number }[];
}

export interface InspectedSession {
  readonly id: string;
  readonly owner: string;
  readonly capacity: number | undefined;
  /** The capacities that its client has named, without repetitions. */
  readonly capacities: readonly number[];
}

export interface InspectorParts {
  readonly state: GithubState;
  readonly scaleSets: ScaleSets;
  readonly runners: Runners;
  readonly dispatcher: Dispatcher;
  readonly log: EventLog;
}

export class Inspector {
  constructor(private readonly parts: InspectorParts) {}

  jobs(): readonly InspectedJob[] {
    return this.parts.dispatcher.all().map(inspectedJob);
  }

  runners(): readonly InspectedRunner[] {
    return this.parts.runners.all().map(({ id, name, scaleSet, session, job, registeredAt }) => ({
      ...{ id, name, scaleSet: scaleSet.name, isOnline: session !== undefined, job: job?.number, registeredAt },
    }));
  }

  scaleSets(): readonly InspectedScaleSet[] {
    return this.parts.scaleSets.all().map((set) => this.inspectedSet(set));
  }

  events(): readonly LoggedEvent[] {
    return this.parts.log.last();
  }

  private inspectedSet(set: ScaleSet): InspectedScaleSet {
    const { id, name, scope, labels, group, session, queue } = set;
    const { id: sessionId = '', owner = '', capacity, capacities = [] } = session ?? {};
    return {
      ...{ id, name, scope: scope.path, runnerGroup: group.name, labels: labels.map((label) => label.name) },
      session: session === undefined ? undefined : { id: sessionId, owner, capacity, capacities },
      statistics: this.parts.dispatcher.statisticsOf(set),
      undeletedMessages: queue.undeleted.map(({ id: messageId, deliveries }) => ({ id: messageId, deliveries })),
    };
  }
}

function inspectedJob(job: Job): InspectedJob {
  const { number, jobId, runId, owner, repository, request, state, scaleSet, runner, startedBy, assignments } = job;
  const { result, queueTime, scaleSetAssignTime, runnerAssignTime, finishTime } = job;
  return {
    ...{ number, jobId, runId, repository: `${owner}/${repository}`, labels: request.labels, state, assignments },
    ...{ scaleSet: scaleSet?.name, runner: runner?.name, startedBy: [...startedBy] },
    ...{ result, queueTime, scaleSetAssignTime, runnerAssignTime, finishTime },
  };
}
