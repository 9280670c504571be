/**
 * GitHub's REST API: the log-in of a client until it knows the Actions service. Its paths are below `/api/v3`, as on an
 * Enterprise Server, and at the root, as on api.github.com.
 */

import { jsonObjectIn, type Answer, type Route } from '@nodepool/simulated-cloud';
import type { Access } from './access.js';
import { RestError } from './errors.js';
import type { CallFault, GithubContext } from './faults.js';
import { IssuedTokens, tokenIn } from './issued-tokens.js';
import type { Scope, Scopes } from './scopes.js';
import type { GithubState } from './settings.js';
import { checked, type Checked, type Fields } from './strict.js';
import type { Tenants } from './tenants.js';

const INSTALLATION_OPTIONS = {
  'repositories?': 'array',
  'repository_ids?': 'array',
  'permissions?': 'object',
} as const;

export interface RestParts {
  readonly state: GithubState;
  readonly scopes: Scopes;
  readonly access: Access;
  readonly tenants: Tenants;
}

export function restRoutes(parts: RestParts): readonly Route<CallFault>[] {
  const routes = routesOf(parts);
  return [...routes, ...routes.map((route) => ({ ...route, path: `/api/v3${route.path}` }))];
}

function routesOf({ state, scopes, access, tenants }: RestParts): readonly Route<CallFault>[] {
  const registrations = new IssuedTokens<Scope>(state);

  const registrationToken = (operation: string, path: string, scopeOf: Pather): Route<CallFault> =>
    post(operation, `${path}/actions/runners/registration-token`, ({ headers, params }) => {
      const scope = access.checkedScope(headers.authorization, scopes.at(scopeOf(params)));
      const { token, expiresAt } = registrations.issue('A', scope, state.settings.registrationTokenMs);
      return { status: 201, body: { token, expires_at: new Date(expiresAt).toISOString() } };
    });

  return [
    post('apps.createInstallationToken', '/app/installations/:id/access_tokens', (context) => {
      if (context.body.length > 0) checkFields(context, INSTALLATION_OPTIONS);
      const { headers, params } = context;
      const { token, expiresAt } = access.installationToken(headers.authorization, params['id'] ?? '');
      const permissions = { administration: 'write', organization_self_hosted_runners: 'write', metadata: 'read' };
      const expires = new Date(expiresAt).toISOString();
      return { status: 201, body: { token, expires_at: expires, permissions, repository_selection: 'all' } };
    }),
    registrationToken('runners.registrationTokenOfOrganization', '/orgs/:org', ({ org }) => org ?? ''),
    registrationToken(
      'runners.registrationTokenOfRepository',
      '/repos/:org/:repo',
      (at) => `${at['org']}/${at['repo']}`,
    ),
    registrationToken(
      'runners.registrationTokenOfEnterprise',
      '/enterprises/:name',
      ({ name }) => `enterprises/${name}`,
    ),
    post('runners.register', '/actions/runner-registration', (context) => {
      const scope = registrations.grantOf(tokenIn(context.headers.authorization, 'RemoteAuth'));
      if (scope === undefined) throw new RestError(401, 'Bad credentials');
      const { url, runner_event: event } = checkFields(context, { url: 'string', runner_event: 'string' });
      if (event !== 'register') throw new RestError(422, 'runner_event must be "register"');
      if (scopes.at(pathBelow(state.url, url))?.path !== scope.path) throw new RestError(404, 'Not Found');
      return { status: 200, body: { ...tenants.connect(scope), token_schema: 'OAuthAccessToken' } };
    }),
  ];
}

type Pather = (params: GithubContext['params']) => string;

function post(operation: string, path: string, handle: (context: GithubContext) => Answer): Route<CallFault> {
  return {
    operation,
    method: 'POST',
    path,
    handle(context) {
      const agent = context.headers['user-agent'] ?? '';
      if (agent === '') throw new RestError(403, 'Request forbidden. The header User-Agent is missing.');
      return handle(context);
    },
  };
}

function checkFields<F extends Fields>(context: GithubContext, fields: F): Checked<F> {
  const body = jsonObjectIn(context, () => new RestError(400, 'Problems parsing JSON'));
  return checked(body, fields, (problem) => new RestError(422, `Invalid request. ${problem}.`));
}

/** Returns the path of a page of this GitHub, without slashes at its ends; empty for other addresses. */
function pathBelow(url: string, page: string): string {
  return page.startsWith(`${url}/`) ? page.slice(url.length + 1).replace(/\/+$/, '') : '';
}
