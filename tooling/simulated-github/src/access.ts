/**
 * Access to the REST API: the App, its installations, and personal access tokens. See
 * https://docs.github.com/apps/creating-github-apps/authenticating-with-a-github-app/generating-a-json-web-token-jwt-for-a-github-app
 */

import { RestError } from './errors.js';
import { IssuedTokens, tokenIn, type IssuedToken } from './issued-tokens.js';
import { isSignedBy, readJwt } from './jwt.js';
import { keyPair } from './keys.js';
import type { Scope } from './scopes.js';
import { serviceTime, type GithubState, type World } from './settings.js';

export const APP_ID = 1001;
export const CLIENT_ID = 'Iv23liSimulated';
const FIRST_INSTALLATION = 5001;
/** Maximum time from now until a token of an App expires (s). */
const MAX_APP_TOKEN_S = 600;

/** Permissions that a personal access token needs for the runners of each kind of scope. */
const NEEDED_PERMISSION = {
  organization: 'admin:org',
  repository: 'repo',
  enterprise: 'manage_runners:enterprise',
} as const satisfies Record<Scope['kind'], string>;

export type Permission = (typeof NEEDED_PERMISSION)[Scope['kind']];

type Grant =
  | { readonly kind: 'installation'; readonly organization: string }
  | { readonly kind: 'personal'; readonly permissions: readonly Permission[] };

export class Access {
  private readonly key = keyPair('app');
  private readonly tokens: IssuedTokens<Grant>;
  /** Organizations by the id of their installation. */
  readonly installations: ReadonlyMap<number, string>;

  constructor(
    private readonly state: GithubState,
    world: World,
  ) {
    this.tokens = new IssuedTokens(state);
    const organizations = Object.keys(world.organizations);
    this.installations = new Map(organizations.map((name, index) => [FIRST_INSTALLATION + index, name]));
  }

  /** Returns the App's private key in PEM format. */
  appKey(): string {
    // GitHub's downloads have this format.
    return this.key.privateKey.export({ type: 'pkcs1', format: 'pem' }).toString();
  }

  /** Creates a personal access token that does not expire. Default: with all permissions. */
  personalToken(permissions: readonly Permission[] = Object.values(NEEDED_PERMISSION)): string {
    return this.tokens.issue('ghp_', { kind: 'personal', permissions }, Infinity).token;
  }

  /** Revokes the tokens of installations before their expiry. */
  revokeInstallationTokens(): void {
    this.tokens.revoke(({ kind }) => kind === 'installation');
  }

  /** Returns a token for an installation. Throws unless the App asks for it. */
  installationToken(authorization: string | undefined, id: string): IssuedToken {
    this.checkApp(tokenIn(authorization, 'Bearer'));
    const organization = this.installations.get(Number(id));
    if (organization === undefined) throw new RestError(404, 'Not Found');
    const { installationTokenMs } = this.state.settings;
    return this.tokens.issue('ghs_', { kind: 'installation', organization }, installationTokenMs);
  }

  /** Returns the scope. Throws unless it exists and the token may register its runners. */
  checkedScope(authorization: string | undefined, scope: Scope | undefined): Scope {
    const grant = this.tokens.grantOf(tokenIn(authorization, 'Bearer'));
    if (grant === undefined) throw new RestError(401, 'Bad credentials');
    if (scope === undefined) throw new RestError(404, 'Not Found');
    if (grant.kind === 'personal') {
      if (grant.permissions.includes(NEEDED_PERMISSION[scope.kind])) return scope;
      throw new RestError(403, `Must have the permission ${NEEDED_PERMISSION[scope.kind]}`);
    }
    if (scope.kind === 'enterprise') throw new RestError(403, 'Resource not accessible by integration');
    if (scope.organization !== grant.organization) throw new RestError(404, 'Not Found');
    return scope;
  }

  private checkApp(token: string): void {
    const jwt = readJwt(token);
    if (jwt === undefined) throw new RestError(401, 'A JSON web token could not be decoded');
    const { iss, iat, exp } = jwt.claims;
    if (iss !== CLIENT_ID && iss !== APP_ID && iss !== String(APP_ID))
      throw new RestError(404, 'Integration not found');
    if (!isSignedBy(jwt, this.key.publicKey)) throw new RestError(401, 'A JSON web token could not be decoded');
    const now = serviceTime(this.state) / 1000;
    if (typeof iat !== 'number' || iat > now) {
      const expected = 'must be an Integer representing the time that the assertion was issued';
      throw new RestError(401, `'Issued at' claim ('iat') ${expected}`);
    }
    if (typeof exp !== 'number' || exp <= now) {
      const expected = 'must be a numeric value representing the future time at which the assertion expires';
      throw new RestError(401, `'Expiration time' claim ('exp') ${expected}`);
    }
    if (exp > now + MAX_APP_TOKEN_S) {
      throw new RestError(401, "'Expiration time' claim ('exp') is too far in the future");
    }
  }
}
