/**
 * Credentials. Libraries sign tokens with the key of a service account themselves (https://google.aip.dev/auth/4111),
 * exchange a signed assertion for a token
 * (https://developers.google.com/identity/protocols/oauth2/service-account#httprest), or exchange the refresh token of
 * a login (RFC 6749, section 6).
 */

import { createPublicKey, generateKeyPairSync, verify } from 'node:crypto';
import { systemClock } from '@nodepool/core';
import type { Answer } from '@nodepool/simulated-cloud';
import { newId, type GceState } from './cloud-state.js';
import { asMessage, textAt, type Message } from './messages.js';
import { GceError } from './api-error.js';
import { PROJECT } from './settings.js';

const ACCOUNT = `nodepool@${PROJECT}.iam.gserviceaccount.com`;
/** Path of the token endpoint. */
export const TOKEN_PATH = '/token';
const JWT_GRANT = 'urn:ietf:params:oauth:grant-type:jwt-bearer';
const REFRESH_GRANT = 'refresh_token';
const TOKEN_SECONDS = 3600;
const SCOPE = /\/auth\/(cloud-platform|compute|devstorage\.read_write)\b/;

let privateKey: string | undefined;

/** Generates the key once for all simulated clouds of a process, because it takes long. */
function ownKey(): string {
  privateKey ??= generateKeyPairSync('rsa', { modulusLength: 2048 })
    .privateKey.export({ type: 'pkcs8', format: 'pem' })
    .toString();
  return privateKey;
}

export class Tokens {
  private readonly key = ownKey();
  private readonly publicKey = createPublicKey(this.key);
  private readonly issued = new Set<string>();
  private keyId = 'first';

  constructor(private readonly state: GceState) {}

  /** Returns the content of a credentials file with the key of a service account. */
  credentials(): Message {
    return {
      type: 'service_account',
      project_id: PROJECT,
      private_key_id: this.keyId,
      private_key: this.key,
      client_email: ACCOUNT,
      client_id: '1',
      token_uri: this.state.url + TOKEN_PATH,
    };
  }

  /** Returns the content of a credentials file with the login of a user. */
  login(): Message {
    return {
      type: 'external_account_authorized_user',
      audience: '//iam.googleapis.com/locations/global/workforcePools/acme/providers/acme',
      client_id: 'nodepool',
      client_secret: 'secret',
      refresh_token: this.refreshToken,
      token_url: this.state.url + TOKEN_PATH,
    };
  }

  /** Returns a token for callers without a library. */
  issue(): string {
    const token = `token-${newId(this.state.random)}`;
    this.issued.add(token);
    return token;
  }

  /** Revokes all tokens of the token endpoint before their expiry. The credentials remain valid. */
  revokeTokens(): void {
    this.issued.clear();
  }

  /** Revokes all issued credentials and their tokens. */
  revokeCredentials(): void {
    this.keyId = newId(this.state.random);
    this.revokeTokens();
  }

  /** Throws unless the token is valid. */
  check(authorization: string | undefined): void {
    const token = authorization?.replace(/^Bearer /, '') ?? '';
    if (this.issued.has(token) || this.isSigned(token)) return;
    const message = 'Request had invalid authentication credentials. Expected OAuth 2 access token.';
    throw new GceError(401, 'authError', message);
  }

  /** Answers a request to the token endpoint with a token for a signed assertion or a refresh token. */
  grant(form: string): Answer {
    const parameters = new URLSearchParams(form);
    const type = parameters.get('grant_type') ?? '';
    if (type === REFRESH_GRANT) {
      if (parameters.get('refresh_token') === this.refreshToken) return this.granted();
      return grantError('invalid_grant', 'Token has been expired or revoked.');
    }
    if (type !== JWT_GRANT) return grantError('unsupported_grant_type', `Invalid grant_type: ${type}`);
    const claims = this.claimsIn(parameters.get('assertion') ?? '');
    if (claims === undefined) return grantError('invalid_grant', 'Invalid JWT Signature.');
    if (claims['aud'] !== this.state.url + TOKEN_PATH)
      return grantError('invalid_grant', 'Invalid JWT: Failed audience check.');
    if (!hasScope(claims)) return grantError('invalid_scope', 'Invalid OAuth scope or ID token audience provided.');
    return this.granted();
  }

  private granted(): Answer {
    return {
      status: 200,
      body: { access_token: this.issue(), expires_in: TOKEN_SECONDS, token_type: 'Bearer' },
    };
  }

  private get refreshToken(): string {
    return `refresh-${this.keyId}`;
  }

  private isSigned(token: string): boolean {
    const claims = this.claimsIn(token);
    return claims !== undefined && hasScope(claims);
  }

  /** Returns the claims of an unexpired token that the account signed, else undefined. */
  private claimsIn(token: string): Message | undefined {
    const [header = '', body = '', signature = ''] = token.split('.');
    if (textAt(decoded(header), 'kid') !== this.keyId) return undefined;
    const claims = decoded(body);
    const { exp, iss } = claims;
    if (iss !== ACCOUNT || typeof exp !== 'number' || exp * 1000 < systemClock.now()) return undefined;
    const signed = Buffer.from(`${header}.${body}`);
    const isGenuine = verify('RSA-SHA256', signed, this.publicKey, Buffer.from(signature, 'base64url'));
    return isGenuine ? claims : undefined;
  }
}

function hasScope(claims: Message): boolean {
  return SCOPE.test(textAt(claims, 'scope') ?? '');
}

function grantError(error: string, description: string): Answer {
  return { status: 400, body: { error, error_description: description } };
}

function decoded(part: string): Message {
  try {
    return asMessage(JSON.parse(Buffer.from(part, 'base64url').toString('utf8')));
  } catch {
    // The text is not a token that was issued here.
    return {};
  }
}
