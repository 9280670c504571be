/** Routes of the Actions service with the checks that all of them share. */

import type { Answer, Route } from '@nodepool/simulated-cloud';
import type { CallFault, GithubContext } from './faults.js';
import type { Scope } from './scopes.js';
import type { GithubState } from './settings.js';
import { checkQuery, checkUserAgent, checkVersion } from './strict.js';
import { TENANT_PATH, type Tenants } from './tenants.js';

export interface ActionsRoute {
  readonly operation: string;
  readonly method: string;
  /** Path below the tenant's address. */
  readonly path: string;
  /** Allowed parameters of the query. Default: none. */
  readonly query?: readonly string[];
  /** Default: calls have a token for the tenant. If false, the handler checks the token. */
  readonly adminToken?: boolean;
  readonly handle: (context: GithubContext, scope: Scope) => Answer | Promise<Answer>;
}

/** Converts a route to one that refuses what GitHub's client never sends. */
export function actionsRoute(state: GithubState, tenants: Tenants, route: ActionsRoute): Route<CallFault> {
  const { operation, method, path, query = [], adminToken = true, handle } = route;
  return {
    operation,
    method,
    path: TENANT_PATH + path,
    handle(context) {
      const { headers, params } = context;
      checkUserAgent(context, state);
      const scope = adminToken
        ? tenants.check(headers.authorization, params['tenant'])
        : tenants.scopeOf(params['tenant']);
      checkVersion(context);
      checkQuery(context, query);
      return handle(context, scope);
    },
  };
}
