/** Organizations, repositories and enterprises, to which runner scale sets belong. */

import type { World } from './settings.js';

/** An owner of scale sets; `path` is its path on GitHub's pages, e.g. `acme`, `acme/app` or `enterprises/umbrella`. */
export type Scope = { readonly path: string } & (
  | { readonly kind: 'organization'; readonly organization: string }
  | { readonly kind: 'repository'; readonly organization: string; readonly repository: string }
  | { readonly kind: 'enterprise'; readonly enterprise: string }
);

const ENTERPRISES = 'enterprises';

export class Scopes {
  constructor(private readonly world: World) {}

  /** Returns the scope with a path, or undefined if it does not exist. */
  at(path: string): Scope | undefined {
    const [first = '', second, third] = path.toLowerCase().split('/');
    if (third !== undefined) return undefined;
    if (second === undefined) {
      return this.hasOrganization(first) ? { kind: 'organization', path: first, organization: first } : undefined;
    }
    if (first === ENTERPRISES) {
      const exists = Object.hasOwn(this.world.enterprises, second);
      return exists ? { kind: 'enterprise', path: `${ENTERPRISES}/${second}`, enterprise: second } : undefined;
    }
    if (!this.hasOrganization(first) || this.world.organizations[first]?.includes(second) !== true) return undefined;
    return { kind: 'repository', path: `${first}/${second}`, organization: first, repository: second };
  }

  /** Returns true if the scope's runners may serve a repository. */
  serves(scope: Scope, owner: string, repository: string): boolean {
    if (scope.kind === 'enterprise') return this.world.enterprises[scope.enterprise]?.includes(owner) === true;
    if (scope.organization !== owner) return false;
    return scope.kind === 'organization' || scope.repository === repository;
  }

  private hasOrganization(name: string): boolean {
    return Object.hasOwn(this.world.organizations, name);
  }
}
