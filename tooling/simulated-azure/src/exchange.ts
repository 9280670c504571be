/** A call as its handler gets it, and its answer. */

import type { JsonObject, JsonValue } from '@nodepool/core';
import type { Definitions } from './definitions.js';

export interface Exchange {
  readonly method: string;
  readonly query: URLSearchParams;
  /** Parts of the path, without the subscription. */
  readonly params: readonly string[];
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly body: Buffer;
  readonly json: () => JsonObject;
  /** Age of lists, milliseconds. */
  readonly lagMs: number;
  /** Path and query, for links to further pages. */
  readonly url: URL;
}

export interface Answer {
  readonly status: number;
  readonly body?: JsonValue | undefined;
  /** Replaces the JSON body. */
  readonly text?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface Route {
  /** Name in fault plans and call logs, e.g. `virtualMachines.put`. */
  readonly operation: string;
  readonly method: string;
  readonly path: RegExp;
  /** Names of the groups of `path`, if the operation is published. */
  readonly published?: { readonly definitions: Definitions; readonly name: string; readonly names: readonly string[] };
  /** The call needs no token. */
  readonly open?: boolean;
  readonly handle: (exchange: Exchange) => Answer;
}

/** Returns the route of a published operation; its calls and answers are validated. */
export function published(definitions: Definitions, operation: string, name: string, handle: Route['handle']): Route {
  const { method, path } = definitions.operation(name);
  const names = [...path.matchAll(/\{(\w+)\}/g)].map(([, key = '']) => key);
  const pattern = path.replaceAll('.', '\\.').replace(/\{\w+\}/g, '([^/]+)');
  return { operation, method, path: new RegExp(`^${pattern}$`, 'i'), published: { definitions, name, names }, handle };
}

/** Path of an unpublished call below the subscription. */
export function armPath(rest: string): RegExp {
  return new RegExp(`^/subscriptions/[^/]+/${rest}$`, 'i');
}
