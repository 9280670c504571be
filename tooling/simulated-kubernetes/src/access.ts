/** Authenticates calls by their token and authorizes them by the roles of service accounts. */

import { stringAt, type JsonObject, type JsonValue } from '@nodepool/core';
import type { RequestContext } from '@nodepool/simulated-cloud';
import { apiError } from './api-error.js';
import type { Controllers } from './controllers.js';
import { PROJECT_REQUESTS, PROJECTS, ROLE_BINDINGS, ROLES, type Kind } from './kinds.js';
import { ADMIN_TOKEN, LIMITED_TOKEN, PROVISIONER_TOKEN } from './settings.js';
import type { Store, StoredObject } from './store.js';

/** An action that a call wants. */
export interface Action {
  readonly verb: string;
  readonly kind: Kind;
  /** Also the name of a project, since OpenShift authorizes calls to a project in its namespace. */
  readonly namespace: string | undefined;
}

export interface User {
  readonly name: string;
  readonly isAdmin: boolean;
  /** True if the user has the roles `self-provisioner` and `basic-user` of OpenShift. */
  readonly isProvisioner?: boolean;
  readonly account: { readonly namespace: string; readonly name: string } | undefined;
}

export class Access {
  /** Names of users by their tokens. */
  readonly tokens = new Map([
    [ADMIN_TOKEN, 'admin'],
    [PROVISIONER_TOKEN, 'provisioner'],
    [LIMITED_TOKEN, 'limited'],
  ]);

  constructor(
    private readonly store: Store,
    private readonly controllers: Controllers,
  ) {}

  /** Throws the API's answer unless the call's user may perform the action. */
  check({ headers }: Pick<RequestContext, 'headers'>, action: Action): void {
    const user = this.userOf(headers.authorization);
    if (user.isAdmin || this.isAllowed(user, action)) return;
    const { verb, kind, namespace } = action;
    const where = namespace === undefined ? 'at the cluster scope' : `in the namespace "${namespace}"`;
    const what = `cannot ${verb} resource "${kind.plural}" in API group "${kind.group}" ${where}`;
    throw apiError(403, `${kind.plural} is forbidden: User "${user.name}" ${what}`, {
      details: { kind: kind.plural },
    });
  }

  userOf(authorization: string | undefined): User {
    if (authorization === undefined) return { name: 'system:anonymous', isAdmin: false, account: undefined };
    const token = /^Bearer (.+)$/.exec(authorization)?.[1] ?? '';
    const name = this.tokens.get(token);
    if (name !== undefined) {
      return { name, isAdmin: name === 'admin', isProvisioner: name === 'provisioner', account: undefined };
    }
    const account = this.controllers.accountOf(token);
    if (account === undefined) throw apiError(401, 'Unauthorized');
    return { name: `system:serviceaccount:${account.namespace}:${account.name}`, isAdmin: false, account };
  }

  private isAllowed(user: User, { verb, kind, namespace }: Action): boolean {
    if (user.isProvisioner === true && isProvision(verb, kind)) return true;
    if (namespace === undefined) return false;
    return this.store
      .list(ROLE_BINDINGS, namespace)
      .filter((binding) => listOf(binding, 'subjects').some((subject) => isSubject(subject, user)))
      .some((binding) => this.rulesOf(binding, namespace).some((rule) => permits(rule, verb, kind)));
  }

  private rulesOf(binding: StoredObject, namespace: string): readonly JsonObject[] {
    const role = (binding['roleRef'] ?? {}) as JsonObject;
    // Cluster roles are not simulated, except for that of a project's administrators.
    if (role['kind'] === 'ClusterRole') return [{ apiGroups: ['*'], resources: ['*'], verbs: ['*'] }];
    const found = this.store.get(ROLES, stringAt(role, 'name') ?? '', namespace);
    return found === undefined ? [] : listOf(found, 'rules');
  }
}

/** Returns true for the calls that the roles `self-provisioner` and `basic-user` permit. */
function isProvision(verb: string, kind: Kind): boolean {
  return kind === PROJECT_REQUESTS ? verb === 'create' : kind === PROJECTS && ['list', 'watch'].includes(verb);
}

function isSubject(subject: JsonObject, { name, account }: User): boolean {
  if (account === undefined) return subject['kind'] === 'User' && subject['name'] === name;
  const { namespace } = account;
  return subject['kind'] === 'ServiceAccount' && subject['namespace'] === namespace && subject['name'] === account.name;
}

function permits(rule: JsonObject, verb: string, { group, plural }: Kind): boolean {
  const has = (key: string, value: string): boolean => {
    const values = (rule[key] ?? []) as readonly JsonValue[];
    return values.includes(value) || values.includes('*');
  };
  return has('apiGroups', group) && has('resources', plural) && has('verbs', verb);
}

function listOf(object: JsonObject, key: string): readonly JsonObject[] {
  return (object[key] ?? []) as readonly JsonObject[];
}
