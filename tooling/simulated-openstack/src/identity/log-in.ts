/** Authenticates a token request: password, token and application credential of identity v3. */

import { isJsonObject, type JsonObject, type JsonValue } from '@nodepool/core';
import { type Accounts, type Token, type User, DOMAIN } from './accounts.js';

/** Reason to refuse a login. `malformed` means that the request violates keystone's schema. */
export type LogInFailure = 'unauthorized' | 'scope-with-application-credential' | 'malformed';

/** Returns a new token, or the reason for its refusal. */
export function logIn(accounts: Accounts, auth: JsonObject): Token | LogInFailure {
  const identity = objectOf(auth['identity']);
  const methods = identity?.['methods'];
  if (identity === undefined || !Array.isArray(methods) || methods.length === 0) return 'malformed';
  const method: unknown = methods[0];
  if (typeof method !== 'string') return 'malformed';
  const scope = objectOf(auth['scope']);
  if (method === 'application_credential' && scope !== undefined) return 'scope-with-application-credential';
  const parent = method === 'token' ? accounts.token(textIn(identity['token'], 'id')) : undefined;
  const user = parent?.user ?? userOf(accounts, method, identity);
  if (user === undefined || !mayHave(user, scope)) return 'unauthorized';
  return accounts.issue(user, method, parent);
}

function userOf(accounts: Accounts, method: string, identity: JsonObject): User | undefined {
  if (method === 'password') {
    const named = objectOf(objectOf(identity['password'])?.['user']);
    const user = named === undefined ? undefined : findUser(accounts, named);
    return user?.password === named?.['password'] ? user : undefined;
  }
  if (method === 'application_credential') return ownerOfCredential(accounts, objectOf(identity[method]));
  return undefined;
}

function ownerOfCredential(accounts: Accounts, named: JsonObject | undefined): User | undefined {
  const owner = objectOf(named?.['user']);
  const user = owner === undefined ? undefined : findUser(accounts, owner);
  const credential = accounts.applicationCredentials.find((candidate) =>
    typeof named?.['id'] === 'string'
      ? candidate.id === named['id']
      : candidate.name === named?.['name'] && candidate.user === user,
  );
  return credential?.secret === named?.['secret'] ? credential?.user : undefined;
}

/** Finds a user by id, or by name and domain. */
function findUser(accounts: Accounts, named: JsonObject): User | undefined {
  if (typeof named['id'] === 'string') return accounts.users.find(({ id }) => id === named['id']);
  return isOurDomain(named['domain']) ? accounts.users.find(({ name }) => name === named['name']) : undefined;
}

/** Returns true if the user has a role in the scope. Without a scope, the user's own project is used. */
function mayHave({ project }: User, scope: JsonObject | undefined): boolean {
  if (scope === undefined) return true;
  const wanted = objectOf(scope['project']);
  if (wanted === undefined) return false;
  if (typeof wanted['id'] === 'string') return wanted['id'] === project.id;
  return wanted['name'] === project.name && isOurDomain(wanted['domain']);
}

function isOurDomain(value: JsonValue | undefined): boolean {
  const domain = objectOf(value);
  return domain?.['id'] === DOMAIN.id || domain?.['name'] === DOMAIN.name;
}

function objectOf(value: JsonValue | undefined): JsonObject | undefined {
  return isJsonObject(value) ? value : undefined;
}

function textIn(value: JsonValue | undefined, key: string): string {
  const text = objectOf(value)?.[key];
  return typeof text === 'string' ? text : '';
}
