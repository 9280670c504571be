/** One request of a caller, from its issue until its promise is settled. */

import { OutcomeUnknownError, TimeoutError, ZooKeeperError } from '../errors.js';
import type { JuteReader } from './jute-reader.js';
import type { Backpressure } from './backpressure.js';
import type { AbortGroup, Pending } from './pending.js';
import { serverError, ServerCode } from './server-errors.js';

/** A kind of request. */
export interface Operation<T> {
  /** As in `ZooKeeperCounters.requests` and in errors. */
  readonly name: string;
  /** True when it can change data: then it is never sent twice. */
  readonly write: boolean;
  /** The result, from what follows the header of an answer without error. */
  read(reader: JuteReader, call: Call<T>): T;
  /** True when an answer that there is no such znode is not an error but the result `undefined`. */
  readonly mayBeAbsent?: boolean;
  /** True when it means nothing to any other connection than the one that it was issued on. */
  readonly connectionBound?: boolean;
}

/** What the connection needs to know of a call, whatever its result. */
export interface PipelinedCall extends Pending {
  readonly name: string;
  readonly write: boolean;
  readonly connectionBound: boolean;
  /** The whole message; bytes 4 to 7 are for the xid. */
  readonly frame: Buffer;
  xid: number;
  /** Monotonic; undefined until it was handed to a connection. */
  sentAt: number | undefined;
  /** Takes the server's answer. Throws (`protocol`) when it makes no sense, after having failed the call. */
  answer(code: number, reader: JuteReader): void;
  /** Fails it; if it is a write that was sent, as of unknown outcome, with `error` as the cause. */
  giveUp(error: ZooKeeperError): void;
}

export class Call<T> implements PipelinedCall {
  settled = false;
  deadline = 0;
  xid = 0;
  sentAt: number | undefined;
  abortGroup: AbortGroup | undefined;
  /** Told the code of the answer, or nothing when it was given up, before the promise is settled. */
  onSettled: ((code: number | undefined) => void) | undefined;

  constructor(
    private readonly operation: Operation<T>,
    readonly path: string | undefined,
    readonly frame: Buffer,
    private readonly timeoutMs: number,
    /** Why there is no connection at this moment, for errors. */
    private readonly lastProblem: () => Error | undefined,
    /** Told when it is given up before it was sent. Undefined: it is not a call of the pipeline. */
    private readonly backpressure: Backpressure | undefined,
    private readonly resolve: (value: T) => void,
    private readonly reject: (error: Error) => void,
  ) {}

  get name(): string {
    return this.operation.name;
  }

  get write(): boolean {
    return this.operation.write;
  }

  get connectionBound(): boolean {
    return this.operation.connectionBound === true;
  }

  answer(code: number, reader: JuteReader): void {
    if (this.settled) return;
    const absent = code === ServerCode.noNode && this.operation.mayBeAbsent === true;
    if (code !== ServerCode.ok && !absent) {
      this.fail(serverError(code, this.details), code);
      return;
    }
    let value: T;
    try {
      // `undefined` is a value of T for operations that may find nothing: they declare it.
      value = absent ? (undefined as T) : this.operation.read(reader, this);
    } catch (error) {
      if (!(error instanceof ZooKeeperError) || error.code === 'protocol') {
        this.giveUp(asProtocolError(error));
        throw error;
      }
      this.fail(error);
      return;
    }
    this.settle(code);
    this.resolve(value);
  }

  giveUp(error: ZooKeeperError): void {
    if (this.settled) return;
    if (this.sentAt === undefined) this.backpressure?.remove(this.frame.length);
    if (!this.write || this.sentAt === undefined) {
      this.fail(error);
      return;
    }
    const message = `${this.label}: it was sent, but its answer is not known, so it may or may not have been applied: ${error.message}`;
    this.fail(new OutcomeUnknownError('outcome-unknown', message, { ...this.details, cause: error }));
  }

  timedOut(): void {
    const waitedFor = this.sentAt === undefined ? 'to be sent' : 'for the answer';
    const cause = this.sentAt === undefined ? this.lastProblem() : undefined;
    const why = cause === undefined ? '' : `; last problem: ${cause.message}`;
    const message = `${this.label}: timed out after ${Math.round(this.timeoutMs)} ms, waiting ${waitedFor}${why}`;
    this.giveUp(new TimeoutError('timeout', message, { ...this.details, cause }));
  }

  aborted(reason: Error): void {
    const message = `${this.label}: the caller gave it up: ${reason.message}`;
    this.giveUp(
      reason instanceof ZooKeeperError
        ? reason
        : new ZooKeeperError('aborted', message, { ...this.details, cause: reason }),
    );
  }

  private get label(): string {
    return this.path === undefined ? this.name : `${this.name} ${this.path}`;
  }

  private get details(): { readonly operation: string; readonly path: string | undefined } {
    return { operation: this.name, path: this.path };
  }

  private fail(error: ZooKeeperError, code?: number): void {
    this.settle(code);
    this.reject(error);
  }

  private settle(code: number | undefined): void {
    this.settled = true;
    this.onSettled?.(code);
    this.abortGroup?.delete(this);
    this.abortGroup = undefined;
  }
}

function asProtocolError(error: unknown): ZooKeeperError {
  if (error instanceof ZooKeeperError) return error;
  return new ZooKeeperError('protocol', 'the answer cannot be understood', { cause: error });
}
