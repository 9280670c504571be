/** Routes for runners, see `BrokerHttpClient.cs` and `RunServiceHttpClient.cs` of actions/runner. */

import { isJsonObject } from '@nodepool/core';
import { jsonObjectIn, type Answer, type Route } from '@nodepool/simulated-cloud';
import { BrokerError, invalidRequest } from './errors.js';
import type { CallFault, GithubContext } from './faults.js';
import type { RunnerMessage, RunnerService, RunnerServiceParts } from './runner-service.js';
import { serviceTime } from './settings.js';
import type { Job, JobResult, Runner } from './records.js';

export const TOKEN_PATH = '/oauth/token';
export const BROKER_PATH = '/broker/';
const RUN_PATH = '/run/';
const ASSERTION = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer';
/** Results of jobs: `TaskResult.cs`. */
const RESULTS: ReadonlyMap<string, JobResult> = new Map([
  ['succeeded', 'succeeded'],
  ['failed', 'failed'],
  ['canceled', 'canceled'],
]);

export interface RunnerRouteParts extends RunnerServiceParts {
  readonly service: RunnerService;
  /** Returns the URL of the Actions service. */
  readonly url: () => string;
}

export function runnerRoutes(parts: RunnerRouteParts): readonly Route<CallFault>[] {
  return [...sessionRoutes(parts), ...jobRoutes(parts)];
}

function sessionRoutes(parts: RunnerRouteParts): readonly Route<CallFault>[] {
  const { service, url } = parts;
  return [
    {
      operation: 'runner.token',
      method: 'POST',
      path: TOKEN_PATH,
      handle({ body }) {
        const form = new URLSearchParams(body.toString('utf8'));
        const isKnown =
          form.get('grant_type') === 'client_credentials' && form.get('client_assertion_type') === ASSERTION;
        const token = isKnown ? service.token(form.get('client_assertion') ?? '', url() + TOKEN_PATH) : undefined;
        // Runners end for good on this error: their registration has been deleted.
        if (token === undefined) return { status: 400, body: { error: 'invalid_client' } };
        return { status: 200, body: { access_token: token, token_type: 'JWT', expires_in: 3600 } };
      },
    },
    {
      operation: 'runner.connect',
      method: 'POST',
      path: `${BROKER_PATH}session`,
      handle(context) {
        const runner = service.check(context.headers.authorization);
        const { ownerName, agent } = jsonBody(context);
        const id = isJsonObject(agent) ? agent['id'] : undefined;
        if (typeof ownerName !== 'string' || id !== runner.id) throw invalidRequest('"agent.id" is not the runner\'s');
        return { status: 200, body: { sessionId: service.connect(runner), ownerName } };
      },
    },
    {
      operation: 'runner.message',
      method: 'GET',
      path: `${BROKER_PATH}message`,
      async handle({ headers, query, ended }) {
        const runner = service.check(headers.authorization);
        const isBusy = query.get('status') === 'Busy';
        const message = await service.message(runner, query.get('sessionId') ?? '', isBusy, ended());
        return message === undefined ? { status: 202 } : shownMessage(message, url());
      },
    },
    {
      operation: 'runner.disconnect',
      method: 'DELETE',
      path: `${BROKER_PATH}session`,
      handle({ headers }) {
        service.disconnect(service.check(headers.authorization));
        return { status: 204 };
      },
    },
  ];
}

function jobRoutes(parts: RunnerRouteParts): readonly Route<CallFault>[] {
  const { service, dispatcher, state } = parts;
  return [
    {
      operation: 'runner.startJob',
      method: 'POST',
      path: `${RUN_PATH}acquirejob`,
      handle(context) {
        const runner = service.check(context.headers.authorization);
        const { job } = runner;
        const { jobMessageId } = jsonBody(context);
        service.expectCall(runner);
        if (job?.jobId !== jobMessageId || job === undefined || !dispatcher.start(runner, job)) {
          return { status: 404, body: { source: 'actions-run-service', code: 404, errorMessage: 'Job not found' } };
        }
        const {
          durationMs = 0,
          conclusion = 'succeeded',
          run,
          behaviour = 'normal',
          displayName = 'build',
        } = job.request;
        const simulation = { durationMs, conclusion, behaviour, ...(run === undefined ? {} : { run }) };
        const plan = { planId: job.planId, planType: 'actions', version: 1 };
        return { status: 200, body: { plan, jobId: job.jobId, jobDisplayName: displayName, simulation } };
      },
    },
    {
      operation: 'runner.renewJob',
      method: 'POST',
      path: `${RUN_PATH}renewjob`,
      handle(context) {
        const { runner, job } = runningJob(context, service);
        service.expectCall(runner);
        dispatcher.renew(job);
        const lockedUntil = new Date(serviceTime(state) + state.settings.jobLockMs).toISOString();
        return { status: 200, body: { lockedUntil } };
      },
    },
    {
      operation: 'runner.completeJob',
      method: 'POST',
      path: `${RUN_PATH}completejob`,
      handle(context) {
        const { job, body } = runningJob(context, service);
        const { conclusion } = body;
        const result = typeof conclusion === 'string' ? RESULTS.get(conclusion) : undefined;
        if (result === undefined) throw invalidRequest('"conclusion" is unknown');
        dispatcher.finish(job, result);
        return { status: 204 };
      },
    },
  ];
}

interface RunningJob {
  readonly runner: Runner;
  readonly job: Job;
  readonly body: ReturnType<typeof jsonBody>;
}

/** Returns the job of a call. Throws unless the runner runs it. */
function runningJob(context: GithubContext, service: RunnerService): RunningJob {
  const runner = service.check(context.headers.authorization);
  const body = jsonBody(context);
  const { job } = runner;
  if (job?.state === 'running' && body['jobId'] === job.jobId && body['planId'] === job.planId) {
    return { runner, job, body };
  }
  throw new BrokerError(404, 'JobNotFound', 'The runner does not run this job');
}

function shownMessage(message: RunnerMessage, url: string): Answer {
  const { job } = message;
  const [messageType, body] =
    message.kind === 'cancel'
      ? ['JobCancellation', { jobId: job.jobId, timeout: '00:05:00' }]
      : [
          'RunnerJobRequest',
          { id: job.jobId, runner_request_id: job.jobId, should_acknowledge: false, run_service_url: url + RUN_PATH },
        ];
  return { status: 200, body: { messageId: job.number, messageType, body: JSON.stringify(body) } };
}

function jsonBody(context: GithubContext): ReturnType<typeof jsonObjectIn> {
  return jsonObjectIn(context, () => invalidRequest('The body is not a JSON object'));
}
