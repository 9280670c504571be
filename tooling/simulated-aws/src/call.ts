/** A call as the handlers of the services receive it. */

import type { Principal } from './account.js';
import type { AwsFault } from './faults.js';
import type { Structure } from './protocol/values.js';

export interface AwsCall {
  /** Name of the operation, e.g. `RunInstances`. */
  readonly operation: string;
  readonly region: string;
  readonly principal: Principal;
  readonly requestId: string;
  readonly now: number;
  /** Time whose state the call sees; earlier than `now` if reads lag. */
  readonly asOf: number;
  readonly faults: readonly AwsFault[];
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
  /** Aborted when the cloud closes. */
  readonly signal: AbortSignal;
  /** Records that the call needs a further right, e.g. `iam:PassRole`. Throws if no policy grants it. */
  authorize(action: string): void;
}

/** Answers a call with the output of its operation. */
export type Handler = (input: Structure, call: AwsCall) => Structure | Promise<Structure>;

export type Handlers = Readonly<Record<string, Handler>>;

/**
 * Returns a handler for an operation whose input and output have the types of Amazon's SDK. The definitions, from which
 * these types come, have checked the input; the writers of answers check the output.
 */
// eslint-disable-next-line @typescript-eslint/no-unnecessary-type-parameters -- types the parameter of the callback
export function operation<I extends object, O extends object>(
  handle: (input: I, call: AwsCall) => O | Promise<O>,
): Handler {
  return handle as unknown as Handler;
}

/** Returns the first fault of a kind. */
export function faultOf<K extends AwsFault['kind']>(
  { faults }: Pick<AwsCall, 'faults'>,
  kind: K,
): Extract<AwsFault, { readonly kind: K }> | undefined {
  return faults.find((fault): fault is Extract<AwsFault, { readonly kind: K }> => fault.kind === kind);
}
