/** A call as its handler receives it, and the routes of the services. */

import type { JsonObject } from '@nodepool/core';
import { routePath, type Answer, type RequestContext } from '@nodepool/simulated-cloud';
import type { Definitions } from './definitions.js';
import type { CallFault } from './faults.js';

export interface AzureContext extends Omit<RequestContext<CallFault>, 'params'> {
  /** Parts of the path, without the subscription. */
  readonly params: readonly string[];
  readonly json: () => JsonObject;
}

export interface AzureRoute {
  /** Name in fault plans and call logs, e.g. `virtualMachines.put`. */
  readonly operation: string;
  readonly method: string;
  readonly path: string;
  /** The published operation; undefined for unpublished calls. */
  readonly published?: { readonly definitions: Definitions; readonly name: string };
  /** If true, the call needs no token. */
  readonly open?: boolean;
  readonly handle: (context: AzureContext) => Answer;
}

/** Returns the route of a published operation, whose calls and answers are validated. */
export function published(
  definitions: Definitions,
  operation: string,
  name: string,
  handle: AzureRoute['handle'],
): AzureRoute {
  const { method, path } = definitions.operation(name);
  return { operation, method, path: routePath(path), published: { definitions, name }, handle };
}

/** Returns how outdated the lists of a call are (ms). */
export function listAge({ faults }: AzureContext): number {
  return Math.max(0, ...faults.map((fault) => (fault.kind === 'lag' ? fault.ms : 0)));
}
