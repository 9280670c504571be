/** keystone: identity v3. */

import { isJsonObject } from '@nodepool/core';
import { ApiError, type Answer } from '@nodepool/simulated-cloud';
import {
  bodyOf,
  json,
  titleOf,
  type OpenStackRequest,
  type OwnedRequest,
  type Service,
} from '../http/request-context.js';
import type { OpenStackState } from '../cloud-state.js';
import { DOMAIN, ROLE_NAMES, type Accounts, type Token } from './accounts.js';
import type { Catalog } from './catalog.js';
import { logIn } from './log-in.js';
import { projectRoutes } from './project-routes.js';

const MALFORMED =
  'The server could not comply with the request since it is either malformed or otherwise incorrect. The client is assumed to be in error.';
const UNAUTHORIZED = 'The request you have made requires authentication.';

/** The answer of Flask, which keystone uses, for an unknown path. */
const NO_ROUTE: Answer = {
  status: 404,
  type: 'text/html; charset=utf-8',
  body: '<!doctype html>\n<html lang=en>\n<title>404 Not Found</title>\n<h1>Not Found</h1>\n<p>The requested URL was not found on the server. If you entered the URL manually please check your spelling and try again.</p>\n',
};

export function identityService(accounts: Accounts, catalog: Catalog, state: OpenStackState): Service {
  const unauthorized = (): Answer => failure(401, UNAUTHORIZED, challenge(state.authUrl));

  const view = (token: Token, withCatalog: boolean): object => ({
    token: {
      methods: token.methods,
      user: { domain: DOMAIN, id: token.user.id, name: token.user.name, password_expires_at: null },
      audit_ids: token.auditIds,
      expires_at: isoMicrosZ(token.expiresAt),
      issued_at: isoMicrosZ(token.issuedAt),
      project: { domain: DOMAIN, ...token.user.project },
      is_domain: false,
      roles: ROLE_NAMES[token.user.admin ? 'admin' : 'member'].map((name) => ({ id: roleId(name), name })),
      ...(withCatalog ? { catalog: catalog.of(token.user.project.id) } : {}),
    },
  });

  const authenticate = (request: OpenStackRequest): Answer => {
    const body = bodyOf(request, () => malformed('Expecting to find valid JSON in request body. '));
    const auth = body['auth'];
    if (!isJsonObject(auth)) throw malformed('Expecting to find auth in request body. ');
    const token = logIn(accounts, auth);
    if (token === 'malformed') throw malformed('Expecting to find identity in auth. ');
    if (token === 'scope-with-application-credential') {
      const message =
        'Error authenticating with application credential: Application credentials cannot request a scope.';
      return failure(401, message, challenge(state.authUrl), { identity: {} });
    }
    if (token === 'unauthorized') return unauthorized();
    return json(201, view(token, !request.query.has('nocatalog')), { 'X-Subject-Token': token.id });
  };

  const subject = (request: OwnedRequest): Token => {
    const id = request.headers['x-subject-token'];
    const token = typeof id === 'string' ? accounts.token(id) : undefined;
    if (token === undefined) throw new ApiError(failure(404, 'Failed to validate token'));
    return token;
  };

  return {
    name: 'identity',
    unauthorized,
    failure: (status, message, headers) => failure(status, message, headers),
    noRoute: (known) => (known ? json(405, { message: 'The method is not allowed for the requested URL.' }) : NO_ROUTE),
    routes: [
      {
        method: 'GET',
        path: '/',
        operation: 'versions',
        public: true,
        handle: ({ serviceUrl }) =>
          json(300, { versions: { values: [version(serviceUrl)] } }, { Location: `${serviceUrl}/v3/` }),
      },
      {
        method: 'GET',
        path: '/v3',
        operation: 'version',
        public: true,
        handle: ({ serviceUrl }) => json(200, { version: version(serviceUrl) }),
      },
      { method: 'POST', path: '/v3/auth/tokens', operation: 'tokens.create', public: true, handle: authenticate },
      {
        method: 'GET',
        path: '/v3/auth/tokens',
        operation: 'tokens.show',
        handle: (request) => {
          const token = subject(request);
          return json(200, view(token, !request.query.has('nocatalog')), { 'X-Subject-Token': token.id });
        },
      },
      {
        method: 'DELETE',
        path: '/v3/auth/tokens',
        operation: 'tokens.delete',
        handle: (request) => {
          accounts.revoke(subject(request).id);
          return { status: 204 };
        },
      },
      {
        method: 'GET',
        path: '/v3/auth/catalog',
        operation: 'catalog.show',
        handle: ({ caller, serviceUrl }) =>
          json(200, { catalog: catalog.of(caller.projectId), links: { self: `${serviceUrl}/v3/auth/catalog` } }),
      },
      {
        method: 'GET',
        path: '/v3/auth/projects',
        operation: 'projects.list',
        handle: ({ caller, serviceUrl }) =>
          json(200, {
            projects: accounts.projects
              .filter(({ id }) => id === caller.projectId)
              .map((project) => ({
                ...project,
                domain_id: DOMAIN.id,
                description: '',
                enabled: true,
                is_domain: false,
              })),
            links: { next: null, self: `${serviceUrl}/v3/auth/projects`, previous: null },
          }),
      },
      ...projectRoutes(accounts, failure),
      {
        method: 'GET',
        path: '/v3/users/:user/application_credentials',
        operation: 'application-credentials.list',
        handle: ({ caller, serviceUrl }) =>
          json(200, {
            application_credentials: accounts.applicationCredentials
              .filter(({ user }) => user.id === caller.userId)
              .map(({ id, name, user }) => ({
                id,
                name,
                description: null,
                user_id: user.id,
                project_id: user.project.id,
                expires_at: null,
                unrestricted: true,
              })),
            links: {
              next: null,
              self: `${serviceUrl}/v3/users/${caller.userId}/application_credentials`,
              previous: null,
            },
          }),
      },
    ],
  };
}

function version(serviceUrl: string): object {
  return {
    id: 'v3.14',
    status: 'stable',
    updated: '2020-04-07T00:00:00Z',
    links: [{ rel: 'self', href: `${serviceUrl}/v3/` }],
    'media-types': [{ base: 'application/json', type: 'application/vnd.openstack.identity-v3+json' }],
  };
}

function malformed(detail: string): ApiError {
  return new ApiError(failure(400, detail + MALFORMED));
}

function failure(
  status: number,
  message: string,
  headers: Readonly<Record<string, string>> = {},
  more: object = {},
): Answer {
  const body = { error: { code: status, ...more, message, title: titleOf(status) } };
  return { status, body: `${JSON.stringify(body)}\n\n`, headers };
}

/** Returns the header for a 401. */
export function challenge(uri: string): Record<string, string> {
  return { 'WWW-Authenticate': `Keystone uri="${uri}"` };
}

/** Returns the body with which all services except keystone and glance refuse a token. */
export function tokenRefused(uri: string): Answer {
  return json(401, { error: { code: 401, title: 'Unauthorized', message: UNAUTHORIZED } }, challenge(uri));
}

/** Returns e.g. `2026-11-20T15:53:51.000000Z`. */
function isoMicrosZ(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 23)}000Z`;
}

function roleId(name: string): string {
  return Buffer.from(name.padEnd(16)).toString('hex');
}
