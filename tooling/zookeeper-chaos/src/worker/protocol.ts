/** What the process of the round and the processes of the clients say to each other. */

export interface WorkerSettings {
  readonly servers: string;
  readonly seed: number;
  /** Names of the clients of this process. */
  readonly clients: readonly string[];
  readonly sessionTimeoutMs: number;
  readonly operationTimeoutMs: number;
  /** Calls that each client has in flight. */
  readonly inFlight: number;
  /** File for the histories, a line of JSON per client. */
  readonly historyFile: string;
}

export type Order =
  | { readonly order: 'start'; readonly settings: WorkerSettings }
  /** Makes no new calls, gives all locks up, and waits for what is in flight. Answered with `quiet`. */
  | { readonly order: 'quiet'; readonly withinMs: number }
  /** The last reads, and the history to the file. Answered with `written`. */
  | { readonly order: 'write'; readonly withinMs: number }
  /** Closes the clients, and ends. */
  | { readonly order: 'end' };

export type Report = 'started' | 'quiet' | 'written';
