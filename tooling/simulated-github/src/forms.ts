/** Answer formats of the REST API and of the Actions service. */

import type { VendorForm } from '@nodepool/simulated-cloud';
import { actionsAnswer, restAnswer } from './errors.js';
import type { CallFault } from './faults.js';
import { newUuid, type GithubState } from './settings.js';

export const restForm: VendorForm<CallFault> = {
  jsonType: 'application/json; charset=utf-8',
  noRoute: (_context, pathExists) => restAnswer(pathExists ? 405 : 404, 'Not Found'),
  fault: ({ status, message = 'Planned fault' }) => restAnswer(status, message),
  failure: (status, message) => restAnswer(status, message),
};

export function actionsForm(state: GithubState): VendorForm<CallFault> {
  return {
    jsonType: 'application/json; charset=utf-8',
    noRoute: ({ method, url }, pathExists) =>
      actionsAnswer(pathExists ? 405 : 404, 'VssResourceNotFoundException', `No route for ${method} ${url.pathname}`),
    fault: ({ status, exception = 'VssServiceException', message = 'Planned fault' }) =>
      actionsAnswer(status, exception, message),
    failure: (status, message) => actionsAnswer(status, 'VssServiceException', message),
    headers: () => ({ ActivityId: newUuid(state), 'X-GitHub-Request-Id': newUuid(state) }),
  };
}
