/** Projects, users and application credentials of the sample cloud, and issued tokens. */

import type { OpenStackState } from '../cloud-state.js';
import type { Caller } from '../http/request-context.js';
import { SAMPLE_PASSWORD } from '../settings.js';

export interface Project {
  readonly id: string;
  readonly name: string;
}

export interface User {
  readonly id: string;
  readonly name: string;
  readonly password: string;
  /** The only project in which the user has a role. */
  readonly project: Project;
  readonly admin: boolean;
}

export interface ApplicationCredential {
  readonly id: string;
  readonly name: string;
  readonly secret: string;
  readonly user: User;
}

export interface Token {
  readonly id: string;
  readonly methods: readonly string[];
  readonly user: User;
  readonly auditIds: readonly string[];
  /** Milliseconds since the epoch. */
  readonly issuedAt: number;
  readonly expiresAt: number;
}

export const DOMAIN = { id: 'default', name: 'Default' } as const;

/** Roles of an ordinary user and of an administrator. */
export const ROLE_NAMES = { member: ['reader', 'member'], admin: ['admin', 'member', 'reader'] } as const;

/** Number of tokens at which expired ones are deleted. */
const SWEEP_THRESHOLD = 1000;

export class Accounts {
  readonly users: readonly User[];
  readonly applicationCredentials: readonly ApplicationCredential[];
  private tokens = new Map<string, Token>();

  constructor(private readonly state: OpenStackState) {
    const { random } = state;
    this.users = ['demo', 'limited', 'admin'].map((name) => ({
      id: random.uuidHex(),
      name,
      password: SAMPLE_PASSWORD,
      project: { id: random.uuidHex(), name },
      admin: name === 'admin',
    }));
    this.applicationCredentials = this.users
      .filter(({ name }) => name === 'demo')
      .map((user) => ({ id: random.uuidHex(), name: 'demo-app', secret: SAMPLE_PASSWORD, user }));
  }

  get projects(): readonly Project[] {
    return this.users.map(({ project }) => project);
  }

  /** Returns the project with this name. Throws if it does not exist. */
  projectNamed(name: string): Project {
    const project = this.projects.find((candidate) => candidate.name === name);
    if (project === undefined) throw new Error(`there is no project ${name}`);
    return project;
  }

  nameOfProject(id: string): string {
    return this.projects.find((project) => project.id === id)?.name ?? id;
  }

  /** Issues a token. One that was obtained with another token does not outlive that one. */
  issue(user: User, method: string, parent?: Token): Token {
    const issuedAt = this.state.clock.now();
    const auditId = this.state.random.uuidHex().slice(0, 22);
    const token: Token = {
      id: `gAAAAAB${this.state.random.uuidHex()}${this.state.random.uuidHex()}`,
      methods: [...new Set([...(parent?.methods ?? []), method])],
      user,
      auditIds: [auditId, ...(parent?.auditIds.slice(-1) ?? [])],
      issuedAt,
      expiresAt: parent?.expiresAt ?? issuedAt + this.state.settings.tokenTtlMs,
    };
    if (this.tokens.size >= SWEEP_THRESHOLD) this.sweep();
    this.tokens.set(token.id, token);
    return token;
  }

  /** Returns a token if it is valid. */
  token(id: string): Token | undefined {
    const token = this.tokens.get(id);
    return token !== undefined && token.expiresAt > this.state.clock.now() ? token : undefined;
  }

  caller(tokenId: string): Caller | undefined {
    const user = this.token(tokenId)?.user;
    if (user === undefined) return undefined;
    const { id, name, project, admin } = user;
    return { userId: id, userName: name, projectId: project.id, projectName: project.name, admin, token: tokenId };
  }

  revoke(id: string): void {
    this.tokens.delete(id);
  }

  revokeAll(): void {
    this.tokens = new Map();
  }

  private sweep(): void {
    for (const id of this.tokens.keys()) if (this.token(id) === undefined) this.tokens.delete(id);
  }
}
