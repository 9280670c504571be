/** Errors of a requestor. Each has a stable `code`. */

/** No pool can serve the request, or every launch for it failed. */
export class RequestFailedError extends Error {
  readonly code = 'request-failed';
  constructor(
    readonly requestId: string,
    /** Ids of the pools that declined; none if launches failed. */
    readonly declinedBy: readonly string[],
    /** One sentence for each pool that declined, with its reason. */
    readonly reasons: readonly string[],
  ) {
    super(`request ${requestId} failed: ${reasons.join('; ')}`);
    this.name = 'RequestFailedError';
  }
}

/**
 * - `cancelled`: this handle cancelled the request, or has locked its nodes already.
 * - `removed`: another program deleted the request.
 * - `session-lost`: the request was bound to a ZooKeeper session that was lost.
 */
export type RemovalReason = 'cancelled' | 'removed' | 'session-lost';

const REMOVALS: Readonly<Record<RemovalReason, string>> = {
  cancelled: 'was cancelled or has ended',
  removed: 'was removed by another program',
  'session-lost': 'was lost with its ZooKeeper session; submit it again, or make it durable',
};

/** The request no longer exists. */
export class RequestRemovedError extends Error {
  readonly code = 'request-removed';
  constructor(
    readonly requestId: string,
    readonly reason: RemovalReason,
  ) {
    super(`request ${requestId} ${REMOVALS[reason]}`);
    this.name = 'RequestRemovedError';
  }
}

/** The deadline has passed. */
export class RequestTimeoutError extends Error {
  readonly code = 'request-timeout';
  constructor(what: string, timeoutMs: number) {
    super(`${what} within ${timeoutMs / 1000} s`);
    this.name = 'RequestTimeoutError';
  }
}

/** A node of a fulfilled request cannot be locked for it, e.g. because an operator deleted the node. */
export class NodeNotReadyError extends Error {
  readonly code = 'node-not-ready';
  constructor(
    readonly requestId: string,
    readonly nodeId: string,
    found: string,
  ) {
    super(`node ${nodeId} ${found}, not ready for request ${requestId}`);
    this.name = 'NodeNotReadyError';
  }
}

/** The locks of the nodes are lost. Do not use the nodes: launchers delete them or hand them to other requests. */
export class LeaseLostError extends Error {
  readonly code = 'lease-lost';
  constructor(
    readonly nodeIds: readonly string[],
    cause: unknown,
  ) {
    super(
      `the locks of the nodes are lost (${nodeIds.join(', ')}), with the ZooKeeper session or because another program removed them; ` +
        'launchers delete the nodes, so do not use them',
      { cause },
    );
    this.name = 'LeaseLostError';
  }
}
