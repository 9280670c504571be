/** The interface of a running simulated GitHub. */

import type { CallLog, CloudConnections, FaultPlan, SimulatedCloudOptions } from '@nodepool/simulated-cloud';
import type { Permission } from './access.js';
import type { LoggedEvent } from './event-log.js';
import type { CallFault, MessageFaults } from './faults.js';
import type { InProcessRunner } from './in-process-runner.js';
import type { Inspector } from './inspector.js';
import type { JobRequest } from './records.js';
import type { GithubSettings, World } from './settings.js';

export interface SimulatedGithubOptions extends SimulatedCloudOptions<GithubSettings> {
  /** Port of the Actions service on 127.0.0.1. Default: a free one. */
  readonly actionsPort?: number;
  /** Port of the control interface on 127.0.0.1. Default: a free one. */
  readonly controlPort?: number;
  /** Default: two organizations in one enterprise. */
  readonly world?: World;
  /** Receives every event. */
  readonly print?: (event: LoggedEvent) => void;
}

/** A running simulated GitHub. */
export interface SimulatedGithub {
  /** URL of the pages and of the REST API; a scope is below it, e.g. `${url}/acme`. */
  readonly url: string;
  readonly actionsUrl: string;
  /** Sends a call inside this process, without HTTP: for clients on a virtual clock. */
  readonly fetch: typeof globalThis.fetch;
  /** URL of the control interface and its page. */
  readonly controlUrl: string;
  readonly clientId: string;
  readonly appId: number;
  /** Installation ids of the App by organization. */
  readonly installations: Readonly<Record<string, number>>;
  /** Path of a file with the App's private key. */
  readonly appKeyFile: string;
  /** Path of a file with a personal access token that has all permissions. */
  readonly tokenFile: string;
  /** Path of the stand-in for the runner. */
  readonly runner: string;
  readonly faults: FaultPlan<CallFault>;
  readonly messageFaults: MessageFaults;
  readonly calls: CallLog;
  readonly inspect: Inspector;
  /** Refuses connections to the REST API and to the Actions service, and accepts them again. */
  readonly connections: { readonly rest: CloudConnections; readonly actions: CloudConnections };
  /** Changes settings from now on. */
  configure(settings: Partial<GithubSettings>): void;
  /** Queues a job and returns its number. Throws if its repository does not exist. */
  queueJob(request: JobRequest): number;
  /**
   * Starts the runner of a just-in-time configuration inside this process, on `clock` and without HTTP. Throws if the
   * text is not a configuration.
   */
  startRunner(encodedJitConfig: string): InProcessRunner;
  /** Cancels a job as a user does. Returns false if it does not exist. */
  cancelJob(number: number): boolean;
  /** Deletes a runner as a user does on GitHub's pages, even while it has a job. Returns false if it does not exist. */
  removeRunner(name: string): boolean;
  /** Ends the session of a scale set without a call of its client. Returns false if it has none. */
  loseSession(scaleSet: string): boolean;
  /** Adds a runner group to a scope such as `acme`. Default: for all repositories. */
  addRunnerGroup(scope: string, name: string, repositories?: readonly string[]): number;
  /** Refuses connections to the REST API and to the Actions service for a time (ms). */
  goAway(ms: number): void;
  /** Creates a personal access token. Default: with all permissions. */
  personalToken(permissions?: readonly Permission[]): string;
  /** Revokes tokens before their expiry. */
  revokeTokens(kind: 'installation' | 'admin' | 'queue'): void;
  /** Closes all connections and timers and deletes created files. Idempotent. */
  close(): Promise<void>;
}
