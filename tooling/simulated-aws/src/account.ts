/** Our account: credentials, roles and the rights that IAM policies grant. */

import type { CloudState } from '@nodepool/simulated-cloud';
import type { AwsCredentials, Permissions } from './api.js';
import { ACCOUNT, ROLE_ARN, type AwsSettings } from './settings.js';

/** A user or a role that makes a call. */
export interface Principal {
  readonly arn: string;
  readonly userId: string;
}

/** Credentials with their secrets, as the account knows them. */
export interface KnownCredentials extends AwsCredentials, Principal {
  /** Milliseconds since the epoch; undefined for permanent credentials. */
  readonly expiresAt: number | undefined;
}

const ANONYMOUS: Principal = { arn: 'anonymous', userId: 'anonymous' };

export class Account {
  readonly user: KnownCredentials;
  private readonly sessions = new Map<string, KnownCredentials>();
  private readonly webTokens = new Set<string>();
  private userIsRevoked = false;
  /** True if the role `vmimport` exists. */
  hasImportRole = true;
  readonly permissions = new GrantedPermissions();

  constructor(private readonly state: CloudState<AwsSettings>) {
    this.user = {
      accessKeyId: `AKIA${this.letters(16)}`,
      secretAccessKey: this.secret(),
      arn: `arn:aws:iam::${ACCOUNT}:user/nodepool`,
      userId: `AIDA${this.letters(17)}`,
      expiresAt: undefined,
    };
  }

  /** Returns known credentials, even expired ones. */
  find(accessKeyId: string): KnownCredentials | undefined {
    if (accessKeyId === this.user.accessKeyId) return this.userIsRevoked ? undefined : this.user;
    return this.sessions.get(accessKeyId);
  }

  isExpired({ expiresAt }: KnownCredentials): boolean {
    return expiresAt !== undefined && expiresAt <= this.state.clock.now();
  }

  /** Issues temporary credentials of the user or a role. */
  issue(lifetimeMs: number, principal: Principal = this.user): KnownCredentials {
    const issued: KnownCredentials = {
      accessKeyId: `ASIA${this.letters(16)}`,
      secretAccessKey: this.secret(),
      sessionToken: `${this.secret()}${this.secret()}`,
      ...{ arn: principal.arn, userId: principal.userId },
      expiresAt: this.state.clock.now() + lifetimeMs,
    };
    this.sessions.set(issued.accessKeyId, issued);
    return issued;
  }

  expireSessions(): void {
    const expiresAt = this.state.clock.now();
    for (const [id, session] of this.sessions) this.sessions.set(id, { ...session, expiresAt });
  }

  revokeUser(isRevoked: boolean): void {
    this.userIsRevoked = isRevoked;
  }

  /** Returns a token that proves a web identity, in the form of a JWT without a verifiable signature. */
  webIdentityToken(): string {
    const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
    const token = `${part({ alg: 'RS256' })}.${part({ sub: 'nodepool', jti: this.state.random.uuidHex() })}.c2ln`;
    this.webTokens.add(token);
    return token;
  }

  isWebIdentity(token: string): boolean {
    return this.webTokens.has(token);
  }

  /** Returns the principal of a session of a role. */
  roleSession(session: string): Principal {
    const role = ROLE_ARN.split('/')[1] ?? '';
    const arn = `arn:aws:sts::${ACCOUNT}:assumed-role/${role}/${session}`;
    return { arn, userId: `AROA${this.letters(17)}:${session}` };
  }

  static readonly anonymous = ANONYMOUS;

  private letters(count: number): string {
    return this.state.random.uuidHex().toUpperCase().slice(0, count).padEnd(count, 'Q');
  }

  private secret(): string {
    return Buffer.from(this.state.random.uuidHex().slice(0, 30)).toString('base64');
  }
}

class GrantedPermissions implements Permissions {
  private allowed: readonly string[] | undefined;
  private readonly denied = new Set<string>();
  private readonly seen = new Set<string>();

  allowOnly(actions: readonly string[] | undefined): void {
    this.allowed = actions;
  }

  deny(...actions: readonly string[]): void {
    for (const action of actions) this.denied.add(action);
  }

  allow(...actions: readonly string[]): void {
    for (const action of actions) this.denied.delete(action);
  }

  used(): readonly string[] {
    return [...this.seen].sort((a, b) => a.localeCompare(b));
  }

  resetUsed(): void {
    this.seen.clear();
  }

  /** Records that a call needs the action, and returns true if the policies allow it. */
  permits(action: string): boolean {
    this.seen.add(action);
    if ([...this.denied].some((pattern) => matches(pattern, action))) return false;
    return this.allowed?.some((pattern) => matches(pattern, action)) ?? true;
  }
}

/** Compares an action with a pattern of a policy, which ignores case: `ec2:Describe*`. */
function matches(pattern: string, action: string): boolean {
  const source = pattern
    .replaceAll(/[.$^+()[\]{}|\\]/g, String.raw`\$&`)
    .replaceAll('*', '.*')
    .replaceAll('?', '.');
  return new RegExp(`^${source}$`, 'i').test(action);
}
