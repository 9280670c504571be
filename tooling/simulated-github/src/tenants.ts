/** The Actions service's view of scopes: each is a tenant with an address and tokens of its own. */

import { ActionsError, unauthorized } from './errors.js';
import { IssuedTokens, tokenIn } from './issued-tokens.js';
import type { Scope, Scopes } from './scopes.js';
import type { GithubState } from './settings.js';

/** Path of a tenant's address; its parameter is the tenant's name. */
export const TENANT_PATH = '/tenant/:tenant';

export class Tenants {
  /** URL of the Actions service; empty until it listens. */
  url = '';
  private readonly tokens: IssuedTokens<Scope>;

  constructor(
    private readonly state: GithubState,
    private readonly scopes: Scopes,
  ) {
    this.tokens = new IssuedTokens(state);
  }

  /** Returns the address of a scope's tenant and a token for it. */
  connect(scope: Scope): { readonly url: string; readonly token: string } {
    const { token } = this.tokens.issueJwt(scope.path, scope, this.state.settings.adminTokenMs);
    return { url: `${this.urlOf(scope)}/`, token };
  }

  urlOf({ path }: Scope): string {
    return `${this.url}/tenant/${path.replace('/', '~')}`;
  }

  /** Returns the scope of a tenant. Throws if there is none. */
  scopeOf(tenant: string | undefined): Scope {
    const scope = this.scopes.at((tenant ?? '').replace('~', '/'));
    if (scope === undefined) throw new ActionsError(404, 'VssServiceException', 'The tenant does not exist');
    return scope;
  }

  /** Returns the scope of the called tenant. Throws unless the token belongs to it. */
  check(authorization: string | undefined, tenant: string | undefined): Scope {
    const granted = this.tokens.grantOf(tokenIn(authorization, 'Bearer'));
    if (granted === undefined) throw unauthorized('The token is not valid or has expired');
    const scope = this.scopeOf(tenant);
    if (granted.path !== scope.path) {
      throw new ActionsError(403, 'AccessCheckException', 'The token belongs to another tenant');
    }
    return scope;
  }

  /** Revokes all tokens for the Actions service before their expiry. */
  revoke(): void {
    this.tokens.revoke();
  }
}
