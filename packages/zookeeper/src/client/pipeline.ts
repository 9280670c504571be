/**
 * The queue of unsent calls and the queue of calls that wait for their answers. Answers arrive in the order of the
 * requests. Calls of one turn of the event loop are sent together, within the send window.
 */

import type { ZooKeeperCounters } from '../api.js';
import type { Clock } from '../clock.js';
import { ConnectionLostError, ZooKeeperError } from '../errors.js';
import type { PipelinedCall } from './call.js';
import { Fifo } from './fifo.js';
import type { JuteReader } from './jute-reader.js';
import type { Backpressure } from './backpressure.js';
import { viewOf } from './data-view.js';
import { SendWindow } from './send-window.js';

export interface FrameSink {
  /** Sends bytes, which the caller must not modify afterwards. */
  send(bytes: Buffer): void;
}

const XID_OFFSET = 4;
const LAST_XID = 2 ** 31 - 1;

export class Pipeline {
  private readonly requests: Record<string, number> = {};
  private writes = 0;
  private readonly unsent = new Fifo<PipelinedCall>();
  private readonly sent = new Fifo<PipelinedCall>();
  private readonly window = new SendWindow();
  private sink: FrameSink | undefined;
  private lastXid = 0;
  private flushPending = false;
  /** Set while draining: called once every sent call is answered. */
  private onIdle: (() => void) | undefined;
  private readonly flushNow = (): void => {
    this.flush();
  };

  /** `backpressure` counts an unsent call until it settles, and a sent call until its answer or a lost connection. */
  constructor(
    private readonly clock: Clock,
    private readonly backpressure: Backpressure,
  ) {}

  get counters(): Pick<ZooKeeperCounters, 'requests' | 'writes' | 'inFlight' | 'pendingCalls' | 'pendingBytes'> {
    const { calls: pendingCalls, bytes: pendingBytes } = this.backpressure;
    return {
      requests: { ...this.requests },
      writes: this.writes,
      inFlight: this.sent.size,
      pendingCalls,
      pendingBytes,
    };
  }

  /** Sends the call as soon as there is a connection. */
  submit(call: PipelinedCall): void {
    this.backpressure.add(call.frame.length);
    this.unsent.push(call);
    // During a long outage calls time out; remove them here so that they do not accumulate.
    while (this.unsent.first?.settled === true) this.unsent.shift();
    if (!this.flushPending) this.flushSoon();
  }

  /** Starts to send over a connection with a confirmed session, unsent calls first. */
  attach(sink: FrameSink, sessionTimeoutMs: number): void {
    this.sink = sink;
    this.onIdle = undefined;
    this.window.reset(sessionTimeoutMs);
    this.flush();
  }

  /** Stops sending, and calls `onIdle` once every sent call is answered, unless the connection is lost before. */
  drain(onIdle: () => void): void {
    this.sink = undefined;
    if (this.sent.size === 0) onIdle();
    else this.onIdle = onIdle;
  }

  /**
   * Handles the loss of the connection. Unsent calls stay queued, and sent reads return to the queue. Sent writes fail
   * with `OutcomeUnknownError`.
   */
  detach(error: ZooKeeperError): void {
    this.sink = undefined;
    this.onIdle = undefined;
    const interrupted = this.sent.takeAll();
    const waiting = this.unsent.takeAll();
    // A malformed answer may have ended the connection. Repeating its request would end the next one.
    if (error.code === 'protocol') interrupted[0]?.abandon(error);
    for (const call of interrupted) {
      if (call.operation.write || call.operation.connectionBound === true) call.abandon(lostError(call, error));
      if (call.settled) this.backpressure.remove(call.frame.length);
      else call.sentAt = undefined;
    }
    for (const call of waiting) if (call.operation.connectionBound === true) call.abandon(lostError(call, error));
    for (const call of interrupted) if (!call.settled) this.unsent.push(call);
    for (const call of waiting) if (!call.settled) this.unsent.push(call);
  }

  /**
   * Passes an answer to its call and returns the time when the call was sent. Throws (`protocol`) if the answer is
   * unexpected, out of order or malformed.
   */
  answer(xid: number, code: number, reader: JuteReader): number {
    const call = this.sent.first;
    if (call === undefined) {
      throw new ZooKeeperError('protocol', `the server answered request ${xid}, but no request is pending`);
    }
    if (call.xid !== xid) {
      const due = `${call.xid} (${call.operation.name})`;
      const message = `the server answered request ${xid}, but the answer to ${due} was due`;
      throw new ZooKeeperError('protocol', message);
    }
    const sentAt = call.sentAt ?? 0;
    call.answer(code, reader);
    this.sent.shift();
    this.backpressure.remove(call.frame.length);
    this.window.answered(call.frame.length, sentAt, this.clock.monotonic());
    if (this.unsent.size > 0 && !this.flushPending) this.flushSoon();
    if (this.onIdle !== undefined && this.sent.size === 0) this.becomeIdle();
    return sentAt;
  }

  /** Fails all calls with `error`, and sent writes with `OutcomeUnknownError`. */
  fail(error: ZooKeeperError): void {
    this.sink = undefined;
    this.onIdle = undefined;
    for (const call of this.sent.takeAll()) {
      call.abandon(error);
      this.backpressure.remove(call.frame.length);
    }
    for (const call of this.unsent.takeAll()) call.abandon(error);
  }

  private becomeIdle(): void {
    const { onIdle } = this;
    this.onIdle = undefined;
    onIdle?.();
  }

  private flushSoon(): void {
    if (this.sink === undefined) return;
    this.flushPending = true;
    process.nextTick(this.flushNow);
  }

  /** Removes the calls from the queue that fit into the send window. */
  private takeBatch(): { readonly batch: readonly PipelinedCall[]; readonly size: number } {
    const batch: PipelinedCall[] = [];
    let size = 0;
    for (let call = this.unsent.first; call !== undefined; call = this.unsent.first) {
      const { length } = call.frame;
      if (!call.settled) {
        if (!this.window.admit(length)) break;
        batch.push(call);
        size += length;
      }
      this.unsent.shift();
    }
    return { batch, size };
  }

  private flush(): void {
    this.flushPending = false;
    const { sink } = this;
    if (sink === undefined) return;
    const { batch, size } = this.takeBatch();
    const now = this.clock.monotonic();
    const bytes = Buffer.allocUnsafe(size);
    const view = viewOf(bytes);
    let offset = 0;
    for (const call of batch) {
      this.lastXid = this.lastXid === LAST_XID ? 1 : this.lastXid + 1;
      call.xid = this.lastXid;
      call.sentAt = now;
      bytes.set(call.frame, offset);
      view.setInt32(offset + XID_OFFSET, this.lastXid);
      offset += call.frame.length;
      this.sent.push(call);
      const { name, write } = call.operation;
      this.requests[name] = (this.requests[name] ?? 0) + 1;
      if (write) this.writes++;
    }
    if (size > 0) sink.send(bytes);
  }
}

function lostError({ operation: { name } }: PipelinedCall, cause: ZooKeeperError): ConnectionLostError {
  const message = `${name}: the connection was lost: ${cause.message}`;
  return new ConnectionLostError('connection-lost', message, { operation: name, cause });
}
