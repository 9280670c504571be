/** How nova refuses. */

import { json, Refusal, type Answer } from '../http/exchange.js';

const KINDS: Readonly<Record<number, string>> = {
  400: 'badRequest',
  403: 'forbidden',
  404: 'itemNotFound',
  409: 'conflictingRequest',
  413: 'overLimit',
  429: 'overLimit',
  503: 'serviceUnavailable',
};

export function computeFailure(
  status: number,
  message: string,
  headers: Readonly<Record<string, string>> = {},
): Answer {
  return {
    ...json(status, { [KINDS[status] ?? 'computeFault']: { code: status, message } }, headers),
    type: 'application/json; charset=UTF-8',
  };
}

export function computeRefusal(status: number, message: string, headers?: Readonly<Record<string, string>>): Refusal {
  return new Refusal(computeFailure(status, message, headers));
}

export function malformed(): Refusal {
  return computeRefusal(400, 'Malformed request body');
}

export function noSuchServer(id: string): Refusal {
  return computeRefusal(404, `Instance ${id} could not be found.`);
}
