/** Answers with an error, as the resource manager writes them. */

import type { JsonObject } from '@nodepool/core';

/** Thrown by what handles a call. */
export class Refusal extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly headers: Readonly<Record<string, string>> = {},
  ) {
    super(message);
  }

  get body(): JsonObject {
    return { error: { code: this.code, message: this.message } };
  }
}

export function notFound(id: string): Refusal {
  return new Refusal(404, 'ResourceNotFound', `The Resource '${id}' was not found.`);
}
