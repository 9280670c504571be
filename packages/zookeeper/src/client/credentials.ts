/** The credentials of a client, which it sends on every connection. */

import { ConnectionLostError } from '../errors.js';
import type { Call } from './call.js';
import { Fifo } from './fifo.js';
import type { JuteReader } from './jute-reader.js';
import type { FrameSink } from './pipeline.js';
import { serverError, ServerCode } from './server-errors.js';

interface Credential {
  readonly frame: Buffer;
  /** The pending `addAuth` call that added it, until a server accepted it. */
  call: Call<void> | undefined;
}

export class Credentials {
  private readonly all: Credential[];
  private sink: FrameSink | undefined;
  /** Sent credentials that are not answered yet, in order. */
  private unanswered = new Fifo<Credential>();

  constructor(frames: readonly Buffer[]) {
    this.all = frames.map((frame) => ({ frame, call: undefined }));
  }

  /** Sends all credentials on a new connection. */
  connected(sink: FrameSink): void {
    this.sink = sink;
    this.unanswered = new Fifo();
    for (const credential of this.all) this.send(sink, credential);
  }

  disconnected(): void {
    this.sink = undefined;
  }

  /** Adds a credential. The call settles with the server's answer. */
  add(call: Call<void>): void {
    const credential = { frame: call.frame, call };
    this.all.push(credential);
    if (this.sink !== undefined) this.send(this.sink, credential);
  }

  /**
   * Handles the server's answer to the oldest sent credential. If the server refused it, it closes the connection.
   * Throws `auth-failed` for a credential of the client's options; removes one that was added later and throws
   * `ConnectionLostError`, so that the client reconnects without it.
   */
  answered(code: number, reader: JuteReader): void {
    const credential = this.unanswered.shift();
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
    throw new ConnectionLostError('connection-lost', `reconnecting without the added credentials: ${cause.message}`, {
      cause,
    });
  }

  /** Fails the pending `addAuth` calls. */
  fail(error: Parameters<Call<void>['abandon']>[0]): void {
    for (const { call } of this.all) call?.abandon(error);
  }

  private send(sink: FrameSink, credential: Credential): void {
    this.unanswered.push(credential);
    // A copy, because the connection takes ownership of the bytes.
    sink.send(Buffer.from(credential.frame));
  }
}
