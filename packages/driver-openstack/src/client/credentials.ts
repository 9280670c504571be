/** Reads the authentication settings of `clouds.yaml` and builds the request body for identity v3. */

import { ConfigurationError, objectAt, stringAt, type JsonObject } from '@nodepool/core';

export interface Credentials {
  /** Root of identity v3, without trailing slash, e.g. `https://cloud.example.org:5000/v3`. */
  readonly identityUrl: string;
  /** Body of `POST /auth/tokens`. */
  readonly body: JsonObject;
}

export function secretsIn({ body }: Credentials): readonly (string | undefined)[] {
  const identity = objectAt(objectAt(body, 'auth') ?? {}, 'identity') ?? {};
  const user = objectAt(objectAt(identity, 'password') ?? {}, 'user') ?? {};
  const application = objectAt(identity, 'application_credential') ?? {};
  return [
    stringAt(user, 'password'),
    stringAt(objectAt(identity, 'token') ?? {}, 'id'),
    stringAt(application, 'secret'),
  ];
}

type Method = 'password' | 'token' | 'application_credential';

const METHODS: Readonly<Record<string, Method>> = {
  password: 'password',
  v3password: 'password',
  token: 'token',
  v3token: 'token',
  v3applicationcredential: 'application_credential',
  v3_application_credential: 'application_credential',
  application_credential: 'application_credential',
};

const ALIASES: readonly (readonly [key: string, alias: string])[] = [
  ['project_id', 'tenant_id'],
  ['project_name', 'tenant_name'],
  ['username', 'user_name'],
  ['token', 'auth_token'],
];

/** Strings in `auth` by key. */
type AuthValues = ReadonlyMap<string, string>;

/** Reads `auth` and `auth_type` of a cloud, called `place` in messages. Throws `ConfigurationError` with the key. */
export function readCredentials(cloud: JsonObject, place: string): Credentials {
  const auth = authValues(cloud);
  const method = authMethod(cloud, auth, place);
  const identity = { methods: [method], [method]: METHOD_BODIES[method](auth, place) };
  const scope = method === 'application_credential' ? undefined : scopeOf(auth, place);
  return {
    identityUrl: identityUrl(required(auth, 'auth_url', place), place),
    body: { auth: { identity, ...(scope === undefined ? {} : { scope }) } },
  };
}

/** Reads the keys of `auth`, which may also be on the level above, as in the environment. */
function authValues(cloud: JsonObject): AuthValues {
  const values = new Map<string, string>();
  for (const section of [cloud, objectAt(cloud, 'auth') ?? {}]) {
    for (const [key, value] of Object.entries(section)) {
      if ((typeof value === 'string' && value !== '') || typeof value === 'number') values.set(key, String(value));
    }
  }
  for (const [key, alias] of ALIASES) {
    const value = values.get(alias);
    if (value !== undefined && !values.has(key)) values.set(key, value);
  }
  return values;
}

function authMethod(cloud: JsonObject, auth: AuthValues, place: string): Method {
  const type = stringAt(cloud, 'auth_type') ?? usualType(auth);
  const method = METHODS[type];
  if (method !== undefined) return method;
  throw new ConfigurationError(
    `${place}: auth_type ${JSON.stringify(type)} is not supported; there are password, token and v3applicationcredential`,
  );
}

function usualType(auth: AuthValues): string {
  if (auth.has('application_credential_secret')) return 'v3applicationcredential';
  return auth.has('token') && !auth.has('password') ? 'token' : 'password';
}

const METHOD_BODIES: Readonly<Record<Method, (auth: AuthValues, place: string) => JsonObject>> = {
  password: (auth, place) => ({ user: { ...user(auth, place), password: required(auth, 'password', place) } }),
  token: (auth, place) => ({ id: required(auth, 'token', place) }),
  application_credential: (auth, place) => {
    const secret = required(auth, 'application_credential_secret', place);
    const id = auth.get('application_credential_id');
    if (id !== undefined) return { id, secret };
    const name = auth.get('application_credential_name');
    if (name !== undefined) return { name, secret, user: user(auth, place) };
    throw new ConfigurationError(
      `${place}: auth.application_credential_id is missing (or application_credential_name with the user's name)`,
    );
  },
};

function user(auth: AuthValues, place: string): JsonObject {
  const id = auth.get('user_id');
  if (id !== undefined) return { id };
  const domain = domainOf(auth, 'user');
  if (domain !== undefined) return { name: required(auth, 'username', place), domain };
  required(auth, 'username', place);
  throw new ConfigurationError(
    `${place}: auth.user_domain_name is missing (or user_domain_id, or user_id instead of the name)`,
  );
}

/** Returns the domain of a user or a project: its own, else the common one. */
function domainOf(auth: AuthValues, kind: 'user' | 'project'): JsonObject | undefined {
  const projectScoped = auth.has('project_id') || auth.has('project_name');
  const general = projectScoped ? ['domain', 'default_domain'] : ['default_domain'];
  for (const prefix of [`${kind}_domain`, ...general]) {
    const id = auth.get(`${prefix}_id`);
    if (id !== undefined) return { id };
    const name = auth.get(`${prefix}_name`) ?? (prefix === 'default_domain' ? auth.get(prefix) : undefined);
    if (name !== undefined) return { name };
  }
  return undefined;
}

function scopeOf(auth: AuthValues, place: string): JsonObject | undefined {
  const projectId = auth.get('project_id');
  if (projectId !== undefined) return { project: { id: projectId } };
  const projectName = auth.get('project_name');
  if (projectName !== undefined) {
    const domain = domainOf(auth, 'project') ?? domainOf(auth, 'user');
    if (domain !== undefined) return { project: { name: projectName, domain } };
    throw new ConfigurationError(
      `${place}: auth.project_domain_name is missing (or project_domain_id, or project_id instead of the name)`,
    );
  }
  const domainId = auth.get('domain_id');
  if (domainId !== undefined) return { domain: { id: domainId } };
  const domainName = auth.get('domain_name');
  return domainName === undefined ? undefined : { domain: { name: domainName } };
}

function identityUrl(authUrl: string, place: string): string {
  if (!/^https?:\/\/[^/]+/.test(authUrl)) {
    throw new ConfigurationError(
      `${place}: auth.auth_url ${JSON.stringify(authUrl)} is not a URL; expected e.g. https://cloud.example.org:5000/v3`,
    );
  }
  const url = authUrl.replace(/\/+$/, '');
  if (url.endsWith('/v3')) return url;
  return `${url.replace(/\/v2\.0$/, '')}/v3`;
}

function required(auth: AuthValues, key: string, place: string): string {
  const value = auth.get(key);
  if (value !== undefined) return value;
  throw new ConfigurationError(`${place}: auth.${key} is missing`);
}
