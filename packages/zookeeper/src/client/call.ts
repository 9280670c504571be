import { OutcomeUnknownError, TimeoutError, ZooKeeperError } from '../errors.js';
import type { JuteReader } from './jute-reader.js';
import type { Backpressure } from './backpressure.js';
import type { AbortGroup, Pending } from './pending.js';
import { serverError, ServerCode } from './server-errors.js';

/** The part of a type of request that is independent of its result type. */
interface RequestType {
  /** Name in `ZooKeeperCounters.requests` and in errors. */
  readonly name: string;
  /** True if it can change data. Such a request is never sent twice. */
  readonly write: boolean;
  /** True if the request is meaningless on any other connection than its first. */
  readonly connectionBound?: boolean;
}

/** A type of request. */
export interface Operation<T> extends RequestType {
  /** Reads the result from the body of a successful answer. */
  read(reader: JuteReader, call: Call<T>): T;
  /** True if a missing znode yields the result `undefined` instead of an error. */
  readonly mayBeAbsent?: boolean;
}

/** A call as the pipeline handles it, independent of its result type. */
export interface PipelinedCall extends Pending {
  readonly operation: RequestType;
  /** The whole message. Bytes 4 to 7 are reserved for the xid. */
  readonly frame: Buffer;
  xid: number;
  /** Monotonic milliseconds; undefined until the request is sent. */
  sentAt: number | undefined;
  /** Settles the call with the server's answer. If the answer is malformed, fails the call and throws (`protocol`). */
  answer(code: number, reader: JuteReader): void;
  /** Fails the call with `error`. A write that was sent fails with `OutcomeUnknownError`, caused by `error`. */
  abandon(error: ZooKeeperError): void;
}

export class Call<T> implements PipelinedCall {
  settled = false;
  deadline = 0;
  xid = 0;
  sentAt: number | undefined;
  abortGroup: AbortGroup | undefined;
  /** Called before the promise is settled, with the code of the answer, or undefined if there is none. */
  onSettled: ((code: number | undefined) => void) | undefined;

  constructor(
    readonly operation: Operation<T>,
    readonly path: string | undefined,
    readonly frame: Buffer,
    private readonly timeoutMs: number,
    /** Returns the reason why there is no connection, for errors. */
    private readonly lastProblem: () => Error | undefined,
    /** Counts the call until it is answered; undefined for calls outside the pipeline. */
    private readonly backpressure: Backpressure | undefined,
    private readonly resolve: (value: T) => void,
    private readonly reject: (error: Error) => void,
  ) {}

  answer(code: number, reader: JuteReader): void {
    if (this.settled) return;
    const absent = code === ServerCode.noNode && this.operation.mayBeAbsent === true;
    if (code !== ServerCode.ok && !absent) {
      this.fail(serverError(code, this.details), code);
      return;
    }
    let value: T;
    try {
      // Operations with `mayBeAbsent` have `undefined` in their result type.
      value = absent ? (undefined as T) : this.operation.read(reader, this);
    } catch (error) {
      if (!(error instanceof ZooKeeperError) || error.code === 'protocol') {
        this.abandon(asProtocolError(error));
        throw error;
      }
      this.fail(error);
      return;
    }
    this.settle(code);
    this.resolve(value);
  }

  abandon(error: ZooKeeperError): void {
    if (this.settled) return;
    if (this.sentAt === undefined) this.backpressure?.remove(this.frame.length);
    if (!this.operation.write || this.sentAt === undefined) {
      this.fail(error);
      return;
    }
    const message = `${this.label}: sent, but not answered, so it may have been applied: ${error.message}`;
    this.fail(new OutcomeUnknownError('outcome-unknown', message, { ...this.details, cause: error }));
  }

  timedOut(): void {
    const waitedFor = this.sentAt === undefined ? 'to be sent' : 'for the answer';
    const cause = this.sentAt === undefined ? this.lastProblem() : undefined;
    const why = cause === undefined ? '' : `; last problem: ${cause.message}`;
    const message = `${this.label}: timed out after ${Math.round(this.timeoutMs)} ms, waiting ${waitedFor}${why}`;
    this.abandon(new TimeoutError('timeout', message, { ...this.details, cause }));
  }

  aborted(reason: Error): void {
    const message = `${this.label}: aborted by the caller: ${reason.message}`;
    this.abandon(
      reason instanceof ZooKeeperError
        ? reason
        : new ZooKeeperError('aborted', message, { ...this.details, cause: reason }),
    );
  }

  private get label(): string {
    const { name } = this.operation;
    return this.path === undefined ? name : `${name} ${this.path}`;
  }

  private get details(): { readonly operation: string; readonly path: string | undefined } {
    return { operation: this.operation.name, path: this.path };
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
  return new ZooKeeperError('protocol', 'the answer is malformed', { cause: error });
}
