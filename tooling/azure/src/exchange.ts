/** What a call is to those who handle it, and what they answer. */

import type { JsonObject, JsonValue } from '@nodepool/core';

export interface Exchange {
  readonly method: string;
  readonly query: URLSearchParams;
  readonly params: readonly string[];
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly body: Buffer;
  readonly json: () => JsonObject;
  /** How old lists are. */
  readonly lagMs: number;
  /** Path and query, for links to further pages. */
  readonly url: URL;
}

export interface Answer {
  readonly status: number;
  readonly body?: JsonValue | undefined;
  /** Instead of a JSON body. */
  readonly text?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface Route {
  readonly operation: string;
  readonly method: string;
  /** Groups are `Exchange.params`. */
  readonly path: RegExp;
  /** Without a token of the login. */
  readonly open?: boolean;
  readonly handle: (exchange: Exchange) => Answer;
}

/** Below the subscription. */
export function armPath(rest: string): RegExp {
  return new RegExp(`^/subscriptions/[^/]+/${rest}$`, 'i');
}

/** A resource in a group, or with an action after it. */
export function resourcePath(type: string, rest = ''): RegExp {
  return armPath(`resourceGroups/([^/]+)/providers/${type.replace('.', '\\.')}/([^/]+)${rest}`);
}

export function groupPath(type: string): RegExp {
  return armPath(`resourceGroups/([^/]+)/providers/${type.replace('.', '\\.')}`);
}
