/** Tokens that the service has issued, with what they allow. */

import { newUuid, serviceTime, type GithubState } from './settings.js';
import { signJwt } from './jwt.js';

interface Issued<G> {
  readonly grant: G;
  readonly expiresAt: number;
}

export interface IssuedToken {
  readonly token: string;
  /** Milliseconds since the epoch on the service's clock. */
  readonly expiresAt: number;
}

export class IssuedTokens<G> {
  private readonly issued = new Map<string, Issued<G>>();

  constructor(private readonly state: GithubState) {}

  /** Issues an opaque token with a prefix, e.g. `ghs_`. */
  issue(prefix: string, grant: G, lifetimeMs: number): IssuedToken {
    return this.add(prefix + this.state.random.uuidHex(), grant, lifetimeMs);
  }

  /** Issues a JSON web token, whose `exp` shows the client its expiry in whole seconds. */
  issueJwt(subject: string, grant: G, lifetimeMs: number): IssuedToken {
    const now = Math.floor(serviceTime(this.state) / 1000);
    const exp = now + Math.ceil(lifetimeMs / 1000);
    const claims = { iss: 'simulated-github', sub: subject, iat: now, nbf: now, exp, jti: newUuid(this.state) };
    return this.add(signJwt(claims, 'secret of the service'), grant, lifetimeMs);
  }

  /** Returns what a token allows, or undefined if it is unknown, revoked or expired. */
  grantOf(token: string): G | undefined {
    const found = this.issued.get(token);
    if (found === undefined) return undefined;
    if (found.expiresAt > serviceTime(this.state)) return found.grant;
    this.issued.delete(token);
    return undefined;
  }

  /** Revokes the tokens whose grant matches. */
  revoke(matches: (grant: G) => boolean = () => true): void {
    for (const [token, { grant }] of this.issued) if (matches(grant)) this.issued.delete(token);
  }

  private add(token: string, grant: G, lifetimeMs: number): IssuedToken {
    const expiresAt = serviceTime(this.state) + lifetimeMs;
    this.issued.set(token, { grant, expiresAt });
    return { token, expiresAt };
  }
}

/** Returns the token of a header such as `Bearer token`; an empty text if the scheme differs. */
export function tokenIn(authorization: string | undefined, scheme: 'Bearer' | 'RemoteAuth'): string {
  const [found = '', token = ''] = (authorization ?? '').split(' ');
  return found.toLowerCase() === scheme.toLowerCase() ? token : '';
}
