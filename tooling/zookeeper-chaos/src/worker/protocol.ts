/** The messages between the process of the round and the client processes. */

export interface WorkerSettings {
  readonly servers: string;
  readonly seed: number;
  /** Names of the clients of this process. */
  readonly clients: readonly string[];
  readonly sessionTimeoutMs: number;
  readonly operationTimeoutMs: number;
  /** Number of calls in flight per client. */
  readonly inFlight: number;
  /** Pause of a client between two bursts of calls (ms); 0 for a constant load. */
  readonly pauseMs: number;
  /** File for the histories, a line of JSON per client. */
  readonly historyFile: string;
}

export type Order =
  | { readonly order: 'start'; readonly settings: WorkerSettings }
  /** Stops issuing calls, releases all locks, and waits for the calls in flight. Answered with `quiet`. */
  | { readonly order: 'quiet'; readonly withinMs: number }
  /** Makes the final reads and writes the history to the file. Answered with `written`. */
  | { readonly order: 'write'; readonly withinMs: number }
  /** Closes the clients and exits. */
  | { readonly order: 'end' };

export type Report = 'started' | 'quiet' | 'written';
