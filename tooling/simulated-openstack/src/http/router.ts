/** Finds the route of a path. */

import type { Route, Service } from './exchange.js';

export interface Match {
  readonly route: Route;
  readonly params: Readonly<Record<string, string>>;
}

interface Compiled {
  readonly route: Route;
  readonly segments: readonly string[];
}

export class Router {
  private readonly compiled: readonly Compiled[];

  constructor(readonly service: Service) {
    this.compiled = service.routes.map((route) => ({ route, segments: split(route.path) }));
  }

  /** The route; `known` where the path exists and has not this method. Earlier routes come first. */
  find(method: string, path: string): Match | { readonly known: boolean } {
    const segments = split(path);
    let known = false;
    for (const { route, segments: pattern } of this.compiled) {
      const params = paramsOf(pattern, segments);
      if (params === undefined) continue;
      if (route.method === method) return { route, params };
      known = true;
    }
    return { known };
  }
}

function split(path: string): string[] {
  return path.split('/').filter((segment) => segment !== '');
}

function paramsOf(pattern: readonly string[], segments: readonly string[]): Record<string, string> | undefined {
  if (pattern.length !== segments.length) return undefined;
  const params: Record<string, string> = {};
  for (const [index, expected] of pattern.entries()) {
    const segment = segments[index] ?? '';
    if (expected.startsWith(':')) params[expected.slice(1)] = segment;
    else if (expected !== segment) return undefined;
  }
  return params;
}
