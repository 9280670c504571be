/** Errors in the formats of GitHub's REST API and of its Actions service. */

import { ApiError, type Answer } from '@nodepool/simulated-cloud';

const DOCUMENTATION_URL = 'https://docs.github.com/rest';

/** An error of the REST API, see https://docs.github.com/rest/using-the-rest-api/troubleshooting-the-rest-api. */
export class RestError extends ApiError {
  constructor(status: number, message: string) {
    super(restAnswer(status, message), message);
  }
}

export function restAnswer(status: number, message: string): Answer {
  return { status, body: { message, documentation_url: DOCUMENTATION_URL, status: String(status) } };
}

/** Namespaces of the exceptions whose names GitHub's client compares or logs. */
const NAMESPACES: Readonly<Record<string, string>> = {
  TaskAgentExistsException: 'GitHub.DistributedTask.WebApi',
  TaskAgentNotFoundException: 'GitHub.DistributedTask.WebApi',
  TaskAgentJobStillRunningException: 'GitHub.DistributedTask.WebApi',
  RunnerScaleSetExistsException: 'GitHub.Actions.Runtime.WebApi',
  RunnerScaleSetNotFoundException: 'GitHub.Actions.Runtime.WebApi',
  RunnerScaleSetSessionConflictException: 'GitHub.Actions.Runtime.WebApi',
};

/** An error of the Actions service; `exception` is the name of a .NET exception. */
export class ActionsError extends ApiError {
  constructor(status: number, exception: string, message: string) {
    super(actionsAnswer(status, exception, message), message);
  }
}

export function actionsAnswer(status: number, exception: string, message: string): Answer {
  const namespace = NAMESPACES[exception] ?? 'GitHub.Services.Common';
  return {
    status,
    body: {
      $id: '1',
      innerException: null,
      message,
      typeName: `${namespace}.${exception}, ${namespace}`,
      typeKey: exception,
      errorCode: 0,
      eventId: 3000,
    },
  };
}

export function invalidRequest(message: string): ActionsError {
  return new ActionsError(400, 'VssPropertyValidationException', message);
}

export function unauthorized(message: string): ActionsError {
  return new ActionsError(401, 'VssUnauthorizedException', message);
}

/** An error of the service that runners call; `errorKind` tells a runner what to do. */
export class BrokerError extends ApiError {
  constructor(statusCode: number, errorKind: string, errorMessage: string) {
    super({ status: statusCode, body: { source: 'actions-broker-listener', errorKind, statusCode, errorMessage } });
  }
}
