/** Reports the life of a lease: as text for people, or as one JSON object per line for programs. */

import { isError, printable, type Clock } from '@nodepool/core';
import {
  LeaseLostError,
  NodeNotReadyError,
  RequestFailedError,
  RequestRemovedError,
  RequestTimeoutError,
  type Interruption,
  type LeasedNode,
  type RequestProgress,
} from '@nodepool/requestor';
import { nodeDocument } from '@nodepool/requestor/http';
import { ExitCode, CommandError, type Output } from './command-context.js';

/** Prints each state of a request and its reasons to stderr. */
export class ProgressNotes {
  private latest = '';

  constructor(private readonly out: Output) {}

  /** The latest reasons, for the message at a time-out. */
  reasons: readonly string[] = [];

  note({ id, state, reasons }: RequestProgress): void {
    this.reasons = reasons;
    const text = printable(`request ${id}: ${[state, ...new Set(reasons)].join('; ')}`);
    if (text !== this.latest) this.out.note(text);
    this.latest = text;
  }
}

/** Prints one JSON object per event to stdout. `docs/requestors.md` documents the events; releases only add fields. */
export class JsonEvents {
  private request: string | null = null;

  constructor(
    private readonly out: Output,
    private readonly clock: Clock,
  ) {}

  progress({ id, state, reasons, declinedBy }: RequestProgress): void {
    this.request = id;
    this.print('progress', { state, reasons, declined_by: declinedBy });
  }

  leased(nodes: readonly LeasedNode[]): void {
    this.print('leased', { nodes: nodes.map(nodeDocument) });
  }

  interrupted({ nodeId, kind, reason, endsAt }: Interruption): void {
    this.print('interrupted', { node: nodeId, kind, reason, ends_at: endsAt === undefined ? null : endsAt / 1000 });
  }

  /** Prints an event without fields of its own. */
  happened(event: 'returned' | 'deleted'): void {
    this.print(event, {});
  }

  failed(error: unknown): void {
    const reason = isError(error) ? error.message : String(error);
    this.print('failed', { code: codeOf(error), reason });
  }

  private print(event: string, fields: object): void {
    this.out.print(JSON.stringify({ event, time: this.clock.now() / 1000, request: this.request, ...fields }));
  }
}

/** Prints to stderr that the instance of a node is lost. */
export function noteInterruption(out: Output, { nodeId, reason, endsAt }: Interruption): void {
  const end = endsAt === undefined ? '' : `; it ends at ${new Date(endsAt).toISOString()}`;
  out.note(printable(`node ${nodeId} is interrupted: ${reason}${end}`));
}

const EXPECTED_ERRORS = [RequestFailedError, RequestRemovedError, NodeNotReadyError];

/** Converts the errors of a requestor to refusals with an exit code. Returns other errors as they are. */
export function refusalOf(error: unknown, reasons: readonly string[] = []): unknown {
  if (error instanceof RequestTimeoutError) {
    const why = reasons.length === 0 ? '' : `: ${reasons.join('; ')}`;
    const message = printable(`${error.message}; the request is cancelled${why}`);
    return new CommandError(message, { cause: error, exitCode: ExitCode.timeout });
  }
  if (error instanceof LeaseLostError)
    return new CommandError(error.message, { cause: error, exitCode: ExitCode.lost });
  return isError(error) && EXPECTED_ERRORS.some((type) => error instanceof type)
    ? new CommandError(printable(error.message), { cause: error })
    : error;
}

function codeOf(error: unknown): string {
  const { cause } = error instanceof CommandError ? error : { cause: error };
  return isError(cause) && 'code' in cause ? String(cause.code) : 'error';
}
