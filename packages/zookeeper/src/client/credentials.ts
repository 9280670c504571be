/** Who the client says it is: credentials that are sent on every connection, and what servers say to them. */

import { ConnectionLostError } from '../errors.js';
import type { Call } from './call.js';
import { Fifo } from './fifo.js';
import type { JuteReader } from './jute-reader.js';
import type { FrameSink } from './pipeline.js';
import { serverError, ServerCode } from './server-errors.js';

interface Credential {
  readonly frame: Buffer;
  /** Of the caller who added it at run time, until a server took it. */
  call: Call<void> | undefined;
}

export class Credentials {
  private readonly all: Credential[];
  private sink: FrameSink | undefined;
  /** Those that were sent and not answered yet, in their order. */
  private asked = new Fifo<Credential>();

  constructor(frames: readonly Buffer[]) {
    this.all = frames.map((frame) => ({ frame, call: undefined }));
  }

  /** Sends all on a new connection. */
  connected(sink: FrameSink): void {
    this.sink = sink;
    this.asked = new Fifo();
    for (const credential of this.all) this.send(sink, credential);
  }

  disconnected(): void {
    this.sink = undefined;
  }

  /** Adds one; the call is answered when a server has taken it, or not. */
  add(call: Call<void>): void {
    const credential = { frame: call.frame, call };
    this.all.push(credential);
    if (this.sink !== undefined) this.send(this.sink, credential);
  }

  /**
   * The server's answer to the oldest that was sent. Throws when it does not take it: `auth-failed` if it is one that the
   * client was made with, `ConnectionLostError` if it was added later and is given up: servers close the connection then.
   */
  answered(code: number, reader: JuteReader): void {
    const credential = this.asked.shift();
    const call = credential?.call;
    if (credential === undefined || call === undefined) {
      if (code !== ServerCode.ok) throw serverError(code, { operation: 'auth' });
      return;
    }
    credential.call = undefined;
    call.answer(code, reader);
    if (code === ServerCode.ok) return;
    this.all.splice(this.all.indexOf(credential), 1);
    const cause = serverError(code, { operation: 'auth' });
    throw new ConnectionLostError('connection-lost', `connecting anew without what was added: ${cause.message}`, {
      cause,
    });
  }

  /** Fails those who still wait. */
  fail(error: Parameters<Call<void>['giveUp']>[0]): void {
    for (const { call } of this.all) call?.giveUp(error);
  }

  private send(sink: FrameSink, credential: Credential): void {
    this.asked.push(credential);
    // The connection takes over the bytes that it is given.
    sink.send(Buffer.from(credential.frame));
  }
}
