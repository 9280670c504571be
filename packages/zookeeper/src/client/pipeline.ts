/**
 * The calls of a client on their way: those that wait to be sent, and those that wait for their answers, which come in
 * the order of the requests. What is issued within one turn of the event loop is sent as one piece, as far as the send
 * window allows.
 */

import type { ZooKeeperCounters } from '../api.js';
import type { Clock } from '../clock.js';
import { ConnectionLostError, ZooKeeperError } from '../errors.js';
import type { PipelinedCall } from './call.js';
import { Fifo } from './fifo.js';
import type { JuteReader } from './jute-reader.js';
import type { Backpressure } from './backpressure.js';
import { SendWindow } from './send-window.js';

/** Where messages go. */
export interface FrameSink {
  /** Takes over the bytes. */
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
  /** Told when everything that was sent is answered, and nothing more is sent until then. */
  private onIdle: (() => void) | undefined;
  private readonly flushNow = (): void => {
    this.flush();
  };

  /** A call counts as `load` until it is settled; once it was sent, until it is answered or its connection is lost. */
  constructor(
    private readonly clock: Clock,
    private readonly backpressure: Backpressure,
  ) {}

  /** The part of the counters that is counted here. */
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
    // In a long outage calls come and are given up: those must not pile up.
    while (this.unsent.peek()?.settled === true) this.unsent.shift();
    this.flushSoon();
  }

  /** There is a connection with a confirmed session: everything that waits is sent over it, in its order. */
  attach(sink: FrameSink, sessionTimeoutMs: number): void {
    this.sink = sink;
    this.onIdle = undefined;
    this.window.reset(sessionTimeoutMs);
    this.flush();
  }

  /**
   * Sends nothing more over the present connection, and calls `onIdle` once everything that was sent is answered, unless
   * the connection is lost before.
   */
  leave(onIdle: () => void): void {
    this.sink = undefined;
    if (this.sent.size === 0) onIdle();
    else this.onIdle = onIdle;
  }

  /**
   * The connection is gone. What was not sent stays; reads that were sent are sent again; writes that were sent are of
   * unknown outcome.
   */
  detach(error: ZooKeeperError): void {
    this.sink = undefined;
    this.onIdle = undefined;
    const interrupted = this.sent.takeAll();
    const waiting = this.unsent.takeAll();
    // An answer that cannot be read may be what ended the connection. Asking for it again would end the next one.
    if (error.code === 'protocol') interrupted[0]?.giveUp(error);
    for (const call of interrupted) {
      if (call.write || call.connectionBound) call.giveUp(lostError(call, error));
      if (call.settled) this.backpressure.remove(call.frame.length);
      else call.sentAt = undefined;
    }
    for (const call of waiting) if (call.connectionBound) call.giveUp(lostError(call, error));
    for (const call of interrupted) if (!call.settled) this.unsent.push(call);
    for (const call of waiting) if (!call.settled) this.unsent.push(call);
  }

  /**
   * Hands an answer to the call that it belongs to; when that was sent. Throws (`protocol`) when nothing was asked, or
   * the answer is not the next one due, or cannot be read.
   */
  answer(xid: number, code: number, reader: JuteReader): number {
    const call = this.sent.peek();
    if (call === undefined) {
      throw new ZooKeeperError('protocol', `the server answered request ${xid}, but nothing was asked`);
    }
    if (call.xid !== xid) {
      const message = `the server answered request ${xid} where the answer to ${call.xid} (${call.name}) was due`;
      throw new ZooKeeperError('protocol', message);
    }
    const sentAt = call.sentAt ?? 0;
    call.answer(code, reader);
    this.sent.shift();
    this.backpressure.remove(call.frame.length);
    this.window.answered(call.frame.length, sentAt, this.clock.monotonic());
    if (this.unsent.size > 0) this.flushSoon();
    if (this.onIdle !== undefined && this.sent.size === 0) this.becomeIdle();
    return sentAt;
  }

  /** Fails everything: unless it is a write that was sent, with `error`. */
  fail(error: ZooKeeperError): void {
    this.sink = undefined;
    this.onIdle = undefined;
    for (const call of this.sent.takeAll()) {
      call.giveUp(error);
      this.backpressure.remove(call.frame.length);
    }
    for (const call of this.unsent.takeAll()) call.giveUp(error);
  }

  private becomeIdle(): void {
    const { onIdle } = this;
    this.onIdle = undefined;
    onIdle?.();
  }

  private nextXid(): number {
    this.lastXid = this.lastXid === LAST_XID ? 1 : this.lastXid + 1;
    return this.lastXid;
  }

  private flushSoon(): void {
    if (this.sink === undefined || this.flushPending) return;
    this.flushPending = true;
    process.nextTick(this.flushNow);
  }

  /** Takes the calls off the queue that the send window has room for. */
  private takeBatch(): { readonly batch: readonly PipelinedCall[]; readonly size: number } {
    const batch: PipelinedCall[] = [];
    let size = 0;
    for (let call = this.unsent.peek(); call !== undefined; call = this.unsent.peek()) {
      const { length } = call.frame;
      if (!call.settled) {
        if (!this.window.admits(length)) break;
        this.window.sent(length);
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
    let offset = 0;
    for (const call of batch) {
      call.xid = this.nextXid();
      call.sentAt = now;
      bytes.set(call.frame, offset);
      bytes.writeInt32BE(call.xid, offset + XID_OFFSET);
      offset += call.frame.length;
      this.sent.push(call);
      this.requests[call.name] = (this.requests[call.name] ?? 0) + 1;
      if (call.write) this.writes++;
    }
    if (size > 0) sink.send(bytes);
  }
}

function lostError(call: PipelinedCall, cause: ZooKeeperError): ConnectionLostError {
  return new ConnectionLostError('connection-lost', `${call.name}: the connection was lost: ${cause.message}`, {
    operation: call.name,
    cause,
  });
}
