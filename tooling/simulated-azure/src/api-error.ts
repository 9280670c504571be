/** Errors in the resource manager's format. */

import { ApiError } from '@nodepool/simulated-cloud';

export class ArmError extends ApiError {
  constructor(status: number, code: string, message: string, headers: Readonly<Record<string, string>> = {}) {
    super({ status, headers, body: { error: { code, message } } }, message);
  }
}

export function notFound(id: string): ArmError {
  return new ArmError(404, 'ResourceNotFound', `The Resource '${id}' was not found.`);
}

export function malformed(): ArmError {
  const message = 'The request content was invalid and could not be deserialized.';
  return new ArmError(400, 'InvalidRequestContent', message);
}
