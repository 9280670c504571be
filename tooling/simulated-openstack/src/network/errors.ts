/** How neutron refuses. */

import { json, Refusal, type Answer } from '../http/exchange.js';

export function networkFailure(
  status: number,
  type: string,
  message: string,
  headers: Readonly<Record<string, string>> = {},
): Answer {
  return json(status, { NeutronError: { type, message, detail: '' } }, headers);
}

export function networkRefusal(status: number, type: string, message: string): Refusal {
  return new Refusal(networkFailure(status, type, message));
}

/** A quota is used up. */
export function overQuota(resource: string): Refusal {
  return networkRefusal(409, 'OverQuota', `Quota exceeded for resources: ['${resource}'].`);
}
