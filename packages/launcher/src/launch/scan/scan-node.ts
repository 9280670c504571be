import { setMaxListeners } from 'node:events';
import type { ServerHostKeyAlgorithm } from 'ssh2';
import {
  AbortedError,
  ConfigurationError,
  KeyScanError,
  TimeoutError,
  toDriverError,
  type DriverError,
  type Logger,
  deadlineSignal,
  sleep,
  type Slots,
  TimerQueue,
  type Clock,
} from '@nodepool/core';
import { withConnection, type Endpoint } from './connection.js';
import { algorithmPerKey, fetchHostKey } from './host-key.js';
import { readHostKeyAlgorithms } from './server-hello.js';

/** The login of a node and the limits of its scan. */
export interface NodeLogin extends Endpoint {
  /** `ssh` and `network_cli` have host keys; for other types, the scan only waits for the port. */
  readonly connectionType: string;
  readonly signal: AbortSignal;
  /** Limit of the scan, milliseconds. */
  readonly timeoutMs: number;
  readonly log: Logger;
  /** Called at the first accepted connection. */
  readonly onConnected?: () => void;
}

const SSH_TYPES: ReadonlySet<string> = new Set(['ssh', 'network_cli']);

/** Delays between attempts, milliseconds; they grow from the first to the longest. */
const FIRST_DELAY_MS = 100;
const MAX_DELAY_MS = 2000;
const DELAY_GROWTH = 1.5;

/** Number of attempts to fetch an offered key. One that cannot be fetched is left out if the server has another. */
const ATTEMPTS_PER_KEY = 3;

/**
 * Resolves with the host keys (`<type> <base64>`), one of each kind that the server has; with none for logins without
 * keys. Rejects with `TimeoutError` if the port accepts no connection in time, with `KeyScanError` if it sends no keys,
 * with `AbortedError` if the signal aborts, and with `ConfigurationError` for an invalid port. Connections need a slot.
 */
export async function scanNode(login: NodeLogin, clock: Clock, slots: Slots): Promise<readonly string[]> {
  if (!Number.isInteger(login.port) || login.port < 1 || login.port > 65_535) {
    throw new ConfigurationError(`connection port ${login.port} of ${login.host} is not a TCP port (1 to 65535)`);
  }
  const limited = deadlineSignal({
    timers: new TimerQueue(clock),
    signal: login.signal,
    deadline: clock.monotonic() + login.timeoutMs,
    onDeadline: () => scan.timeout(),
    onAbort: (cause) => new AbortedError(`the scan of port ${login.port} of ${login.host} was aborted`, { cause }),
  });
  // Each connection adds a listener; the default limit would warn of a leak.
  setMaxListeners(0, limited.signal);
  const scan = new Scan(login, clock, slots, limited.signal);
  try {
    return await scan.run();
  } finally {
    limited.unlink();
  }
}

class Scan {
  readonly place: string;
  private accepted = false;
  private lastFailure: unknown;

  constructor(
    private readonly login: NodeLogin,
    private readonly clock: Clock,
    private readonly slots: Slots,
    private readonly signal: AbortSignal,
  ) {
    this.place = `port ${login.port} of ${login.host}`;
  }

  /** Repeats the attempt until it succeeds or the signal aborts. */
  async run(): Promise<readonly string[]> {
    for (let delay = FIRST_DELAY_MS; ; delay = Math.min(delay * DELAY_GROWTH, MAX_DELAY_MS)) {
      try {
        return await this.attempt();
      } catch (error) {
        this.signal.throwIfAborted();
        if (error instanceof KeyScanError) throw error;
        this.lastFailure = error;
      }
      await sleep(this.clock, delay, this.signal);
    }
  }

  /** Returns the error for a scan that has timed out. */
  timeout(): DriverError {
    // The resolution of a host name takes a part of the time; rounded, the text is the same for each check.
    const timeoutMs = Math.ceil(this.login.timeoutMs / 100) * 100;
    const cause = this.lastFailure;
    const reason = cause === undefined ? '' : `; the last failure was: ${toDriverError(cause).message}`;
    const options = { cause };
    if (!this.accepted) {
      return new TimeoutError(`${this.place} accepted no connection within ${timeoutMs} ms${reason}`, options);
    }
    return new KeyScanError(`${this.place} gave no ssh host keys within ${timeoutMs} ms${reason}`, options);
  }

  private async attempt(): Promise<readonly string[]> {
    const offered = await this.connect(async (socket) => {
      if (!this.accepted) this.login.onConnected?.();
      this.accepted = true;
      return SSH_TYPES.has(this.login.connectionType) ? readHostKeyAlgorithms(socket) : undefined;
    });
    if (offered === undefined) return [];
    const algorithms = algorithmPerKey(offered);
    if (algorithms.length === 0) {
      throw new KeyScanError(
        `${this.place} has no host key of a known kind, only: ${offered.join(', ').slice(0, 200)}`,
      );
    }
    const keys = await Promise.all(algorithms.map((algorithm) => this.fetch(algorithm)));
    const fetched = keys.filter((key) => key !== undefined);
    if (fetched.length === 0) throw this.lastFailure;
    return fetched;
  }

  private async fetch(algorithm: ServerHostKeyAlgorithm): Promise<string | undefined> {
    for (let tries = 1; ; tries += 1) {
      try {
        return await this.connect((socket) => fetchHostKey(socket, algorithm));
      } catch (error) {
        this.signal.throwIfAborted();
        this.lastFailure = error;
        if (tries === ATTEMPTS_PER_KEY) {
          this.login.log.warn('A host key that the server offers could not be fetched', { algorithm, error });
          return undefined;
        }
      }
      await sleep(this.clock, FIRST_DELAY_MS * tries, this.signal);
    }
  }

  private connect<T>(use: Parameters<typeof withConnection<T>>[2]): Promise<T> {
    const { signal, clock } = this;
    return this.slots.run(signal, () => withConnection(this.login, { clock, signal }, use));
  }
}
