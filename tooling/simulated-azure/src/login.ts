/** The login service as used by a service principal: endpoint discovery, and tokens for its secret. */

import type { Answer } from '@nodepool/simulated-cloud';
import type { Cloud } from './cloud.js';
import type { AzureContext, AzureRoute } from './request-context.js';
import { ACCOUNT } from './settings.js';

export class Login {
  private readonly tokens = new Map<string, number>();
  private readonly expiredSecrets = new Set<string>();
  private secret: string = ACCOUNT.clientSecret;

  constructor(private readonly cloud: Cloud) {}

  routes(): readonly AzureRoute[] {
    return [
      {
        operation: 'login.configuration',
        method: 'GET',
        path: '/:tenant/v2.0/.well-known/openid-configuration',
        open: true,
        handle: () => this.configuration(),
      },
      {
        operation: 'login.token',
        method: 'POST',
        path: '/:tenant/oauth2/v2.0/token',
        open: true,
        handle: (context) => this.token(context),
      },
    ];
  }

  isValid(authorization: string | undefined): boolean {
    const endsAt = this.tokens.get(authorization?.replace(/^Bearer /i, '') ?? '');
    return endsAt !== undefined && this.cloud.clock.monotonic() < endsAt;
  }

  revokeAll(): void {
    this.tokens.clear();
  }

  /** Replaces the client secret. The former one counts as expired. Tokens remain valid. */
  changeSecret(secret: string): void {
    this.expiredSecrets.add(this.secret);
    this.secret = secret;
  }

  private configuration(): Answer {
    const authority = `${this.cloud.url}/${ACCOUNT.tenantId}`;
    return {
      status: 200,
      body: {
        issuer: `${authority}/v2.0`,
        authorization_endpoint: `${authority}/oauth2/v2.0/authorize`,
        token_endpoint: `${authority}/oauth2/v2.0/token`,
        jwks_uri: `${authority}/discovery/v2.0/keys`,
      },
    };
  }

  private token({ body }: AzureContext): Answer {
    const form = new URLSearchParams(body.toString('utf8'));
    const secret = form.get('client_secret') ?? form.get('client_assertion') ?? '';
    if (this.expiredSecrets.has(secret)) {
      return refusal(7_000_222, `The provided client secret keys for app '${ACCOUNT.clientId}' are expired.`);
    }
    if (form.get('client_id') !== ACCOUNT.clientId || secret !== this.secret) {
      return refusal(7_000_215, 'Invalid client secret provided.');
    }
    const { tokenSeconds } = this.cloud.settings;
    const token = this.cloud.random.uuidHex();
    this.tokens.set(token, this.cloud.clock.monotonic() + tokenSeconds * 1000);
    return {
      status: 200,
      body: { token_type: 'Bearer', expires_in: tokenSeconds, ext_expires_in: tokenSeconds, access_token: token },
    };
  }
}

function refusal(code: number, message: string): Answer {
  const description = `AADSTS${code}: ${message}`;
  return { status: 401, body: { error: 'invalid_client', error_description: description, error_codes: [code] } };
}
