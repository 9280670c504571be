/** Finds out who calls: by a token of the token file, or by an OpenID Connect token of an issuer. */

import { createHash, timingSafeEqual } from 'node:crypto';
import type { Settings, TokenEntry } from '../settings/settings.js';
import { ProblemError } from '../http/problems.js';
import type { Principal } from './principal.js';
import type { IssuerTokens } from './issuer-tokens.js';

/** Longest accepted token; those of issuers with many claims have a few kilobytes. */
const MAX_TOKEN_CHARACTERS = 16_384;

/** Matches the three parts of a signed JSON Web Token. */
const JWT = /^[\w-]+\.[\w-]+\.[\w-]+$/;

export class Authenticator {
  constructor(
    private readonly settings: () => Pick<Settings, 'tokens'>,
    private readonly issuers: IssuerTokens,
  ) {}

  /** Resolves with the caller. Rejects with a problem `unauthorized`, without a hint which tokens exist. */
  async authenticate(authorization: string | undefined): Promise<Principal> {
    const [, token] = /^Bearer +([^\s]+)$/i.exec(authorization ?? '') ?? [];
    if (token === undefined) throw unauthorized('send the header "Authorization: Bearer TOKEN"');
    if (token.length > MAX_TOKEN_CHARACTERS) throw unauthorized('the token is too long');
    const principal = JWT.test(token) ? await this.issuers.verify(token) : this.known(token);
    if (principal === undefined) throw unauthorized('the token is unknown or expired');
    return principal;
  }

  private known(token: string): Principal | undefined {
    const grant = findToken(this.settings().tokens, token)?.grant;
    return grant === undefined ? undefined : { subject: grant.name, grant };
  }
}

/** Returns the hash under which a token is known. */
export function hashOfToken(token: string): Buffer {
  return createHash('sha256').update(token).digest();
}

/** Compares the token with all hashes, in a time that does not depend on the result. */
function findToken(tokens: readonly TokenEntry[], token: string): TokenEntry | undefined {
  const hash = hashOfToken(token);
  let found: TokenEntry | undefined;
  for (const entry of tokens) if (timingSafeEqual(entry.sha256, hash)) found = entry;
  return found;
}

function unauthorized(detail: string): ProblemError {
  return new ProblemError('unauthorized', detail);
}
