/** Events in the life of requests and nodes that are not visible in records. The parts of the launcher report them. */

import type { DriverErrorCode, FaultScope } from '@nodepool/core';

/** The kind of obstacle for a request in a pool that can serve it. */
export type WaitKind = 'limit' | 'order' | 'capacity' | 'image';

/** The limit that a request waits for, with its amounts at the time of the decision. */
export interface LimitFacts {
  readonly scope: 'pool' | 'provider' | 'tenant';
  /** Name for messages, e.g. `pool main of provider demo`. */
  readonly name: string;
  readonly resource: string;
  readonly limit: number;
  readonly used: number;
  readonly needed: number;
}

/**
 * Why a pool does not serve a request. `label`: it has not all the labels. `expired`: the request has waited for too
 * long. `launch`: its nodes could not be launched. `order`: other pools go first.
 */
export const REFUSAL_CAUSES = ['label', 'limit', 'configuration', 'image', 'expired', 'launch', 'order'] as const;
export type RefusalCause = (typeof REFUSAL_CAUSES)[number];

/** The reason why a pool does not serve a request. */
export interface Refusal {
  readonly cause: RefusalCause;
  /** The reason in words, as one clause. */
  readonly reason: string;
}

export interface Wait {
  readonly kind: WaitKind;
  /** The reason in words, as one clause. */
  readonly reason: string;
  readonly limit?: LimitFacts;
  /** Id of the request that is served before this one. */
  readonly behind?: string;
}

/** Where a node is launched, and for which label. */
export interface LaunchPlace {
  readonly provider: string;
  readonly pool: string;
  readonly label: string;
}

/** The stages of a launch by this launcher. `limit`: the launch waits for the deletion of a failed instance. */
export type LaunchStage = 'creating' | 'booting' | 'login' | 'launched' | 'limit';

export interface AttemptResult {
  /** 1 for the first attempt. */
  readonly number: number;
  /** The offer in words: label, machine type, zone. */
  readonly offer: string;
  /** Undefined if the node is ready. */
  readonly error: { readonly code: DriverErrorCode; readonly message: string; readonly scope: FaultScope } | undefined;
}

export type RequestResult = 'fulfilled' | 'failed' | 'cancelled';

/** A sink of events. Each call costs O(1), a few microseconds at most. */
export interface TimelineRecorder {
  /** A pool (`provider/pool`) has decided that the request waits. */
  waits(requestId: string, pool: string, wait: Wait): void;
  /** A pool has declined the request or leaves it to other pools. */
  leaves(requestId: string, pool: string, refusal: Refusal): void;
  /** A pool tries to accept the request, to serve it or to change its state. */
  accepting(requestId: string, pool: string): void;
  /** The pool has accepted the request. */
  taken(requestId: string, pool: string): void;
  /**
   * The pool that holds the request has written its last state, or has found it deleted. Only one launcher can hold a
   * request, so this one reports the end.
   */
  settled(requestId: string, result: RequestResult, nodes?: readonly string[]): void;
  /** The pool has released the request, or has failed to accept it. Follows each `accepting`. */
  released(requestId: string, pool: string): void;
  /** The launch of a node enters a stage. */
  stage(nodeId: string, place: LaunchPlace, stage: LaunchStage, reason?: string): void;
  /** A launch attempt has ended. */
  attempted(nodeId: string, place: LaunchPlace, result: AttemptResult): void;
}

/** A recorder that discards all events, for programs and tests without timelines. */
export const silentTimelines: TimelineRecorder = {
  waits: () => undefined,
  leaves: () => undefined,
  accepting: () => undefined,
  taken: () => undefined,
  settled: () => undefined,
  released: () => undefined,
  stage: () => undefined,
  attempted: () => undefined,
};
