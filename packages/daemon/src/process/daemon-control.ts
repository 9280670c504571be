/** Turns signals into calls of a daemon, including signals that arrive before it exists. */

import type { Logger } from '@nodepool/core';
import type { Diagnostics } from '../diagnostics/diagnostics.js';
import { isStop, type DaemonSignal } from './process-setup.js';

export interface ControlledDaemon {
  /** Reads the configuration again, in the background. */
  reload(): void;
  /** Called at a second stop signal while the daemon is stopping. If absent, the process exits at once. */
  abort?(): void;
}

export class DaemonControl {
  /** Resolves with the first signal to stop. */
  readonly stopped: Promise<void>;
  private readonly stop = new AbortController();
  private connecting: Pick<ControlledDaemon, 'reload'> | undefined;
  private daemon: ControlledDaemon | undefined;
  private started = false;
  private reloadWanted = false;
  private aborted = false;

  /** Logs `stopMessage` at the first signal to stop. */
  constructor(
    private readonly log: Logger,
    private readonly stopMessage: string,
    private readonly diagnostics: Pick<Diagnostics, 'signalled'>,
  ) {
    this.stopped = new Promise((resolve) => {
      this.stop.signal.addEventListener('abort', () => resolve(), { once: true });
    });
  }

  /** Aborts with the first signal to stop. */
  get signal(): AbortSignal {
    return this.stop.signal;
  }

  readonly receive = (signal: DaemonSignal): void => {
    if (isStop(signal)) this.stopBy(signal);
    else if (signal === 'SIGHUP') this.reload();
    else this.diagnostics.signalled();
  };

  /** Registers the receiver of reloads until the daemon is made. */
  connects(connecting: Pick<ControlledDaemon, 'reload'>): void {
    this.connecting = connecting;
  }

  /** Registers the daemon that signals act on from now on. */
  made(daemon: ControlledDaemon): void {
    this.connecting = undefined;
    this.daemon = daemon;
  }

  /** Allows reloads from now on, and reloads at once if a signal asked for it earlier. */
  hasStarted(): void {
    this.started = true;
    if (this.reloadWanted) this.daemon?.reload();
  }

  private reload(): void {
    if (this.started) {
      this.daemon?.reload();
      return;
    }
    // The connection may just have succeeded, which ends the reloads of `connecting`.
    this.reloadWanted = true;
    if (this.connecting === undefined) {
      this.log.info('The program is starting; the configuration will be read again after that', { signal: 'SIGHUP' });
      return;
    }
    this.log.info('Reading the configuration again while waiting for ZooKeeper', { signal: 'SIGHUP' });
    this.connecting.reload();
  }

  private stopBy(signal: DaemonSignal): void {
    if (!this.stop.signal.aborted) {
      this.log.info(this.stopMessage, { signal });
      this.stop.abort(new Error(`stopped by ${signal}`));
      return;
    }
    this.log.warn('Stopping at once', { signal });
    const { daemon } = this;
    if (daemon?.abort === undefined || this.aborted) process.exit(1);
    this.aborted = true;
    daemon.abort();
  }
}
