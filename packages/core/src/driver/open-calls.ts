/** The remote calls in progress, so that a program can name the call that a silent cloud does not answer. */

import type { ApiCall } from './api.js';

/** A remote call in progress. */
export interface OpenCall {
  /** Name of the call in messages, e.g. `compute: POST servers`. */
  readonly name: string;
  /** Host that the call was sent to; undefined before it is sent, or if the driver does not tell. */
  readonly host: string | undefined;
  /** `Clock.monotonic` milliseconds. */
  readonly startedAt: number;
  /** True once the answer has begun, e.g. that of a watch, which then lasts for minutes. */
  readonly isAnswered: boolean;
}

type CallListener = (call: ApiCall) => void;

/** The calls by the listener that receives their ends; each set begins with the oldest call. */
const openCalls = new WeakMap<CallListener, Set<OpenCall>>();

/** The functions that learn of the start of each call, by the listener that receives its end. */
const startListeners = new WeakMap<CallListener, () => void>();

/** Calls the function at the start of each call whose end the listener receives. */
export function onOpenCall(listener: CallListener, started: () => void): void {
  startListeners.set(listener, started);
}

/** Records the start of a call. The returned function records its end. */
export function openCall(listener: CallListener, call: OpenCall): () => void {
  startListeners.get(listener)?.();
  let calls = openCalls.get(listener);
  if (calls === undefined) openCalls.set(listener, (calls = new Set()));
  calls.add(call);
  return () => calls.delete(call);
}

/** Returns the call that has waited longest for its answer; undefined if there is none, or the driver does not tell. */
export function oldestCall(listener: CallListener): OpenCall | undefined {
  return [...(openCalls.get(listener) ?? [])].find(({ isAnswered }) => !isAnswered);
}
