/**
 * HTTP to a cluster. If the cluster refuses the credentials, they are read again, and the call is repeated if they have
 * changed: tokens and certificates are replaced while the launcher runs.
 */

import { isDeepStrictEqual } from 'node:util';
import type { ApiCredentials, Attempt, Clock, Logger, Refusal } from '@nodepool/core';
import { answerText, toDriverError } from '@nodepool/core';
import { ApiStatusError } from '../errors.js';
import { Connections, type HttpRequest, type Response } from './connections.js';
import type { ClusterAccess, Environment } from './kubeconfig.js';

/** Minimum time between two reads of the credentials after refusals (ms). */
const READ_INTERVAL_MS = 1000;
/** Maximum age of a token that is passed on to Zuul (ms). A former token can remain valid for a while. */
const TOKEN_AGE_MS = 60_000;
const UNAUTHORIZED = 401;
export type Message = Pick<HttpRequest, 'method' | 'path' | 'body'>;

export interface TransportOptions {
  readonly access: ClusterAccess;
  /** Reads the access again. Throws `ConfigurationError`. */
  readonly readAccess: () => ClusterAccess;
  readonly env: Environment['env'];
  readonly clock: Clock;
  readonly log: Logger;
}

/** Credentials that a call was sent with. */
export interface Used {
  readonly connections: Connections;
  readonly authorization: string | undefined;
}

export class ClusterTransport implements ApiCredentials<Used> {
  private connections: Connections;
  private readAt = -Infinity;

  constructor(private readonly options: TransportOptions) {
    this.connections = new Connections(options.access, options.env, options.clock);
  }

  /** The access that the next call uses. */
  get access(): ClusterAccess {
    return this.connections.access;
  }

  /** The values that must not appear in texts. */
  get secrets(): readonly (string | undefined)[] {
    return this.connections.secrets;
  }

  /** Sends a message of a call. Rejects with `ApiStatusError` for an answer with an error; else, its body continues. */
  async send(message: Message, use: 'calls' | 'watches', attempt: Attempt<Used>): Promise<Response> {
    const { http, signal, credentials } = attempt;
    // Connections that were replaced in the meantime accept no calls.
    const { connections, authorization } =
      credentials.connections === this.connections ? credentials : await this.get();
    const response = await connections.request({ ...message, http, signal }, use, authorization);
    if (response.status < 300) return response;
    throw new ApiStatusError(response.status, await answerText(response.body));
  }

  /** Resolves with the user's token as of the last minute; undefined if the user has none. */
  token(): Promise<string | undefined> {
    this.readAgain(TOKEN_AGE_MS);
    return this.connections.token();
  }

  /** Closes the connections. Those of former credentials close when their calls and watches have been aborted. */
  close(): Promise<void> {
    return this.connections.destroy();
  }

  /** Resolves with the credentials of a call. Reads the files again if the token file cannot be read. */
  async get(): Promise<Used> {
    for (let isRepetition = false; ; isRepetition = true) {
      const { connections } = this;
      try {
        const authorization = await connections.authorization();
        if (connections === this.connections) return { connections, authorization };
      } catch (error) {
        if (isRepetition || !(await this.hasOthers({ connections, authorization: undefined }))) throw error;
      }
    }
  }

  /** Resolves with true if there are other credentials than those of a call that was refused, e.g. with status 401. */
  async renew(used: Used, { error, status }: Refusal): Promise<boolean> {
    return (status === UNAUTHORIZED || error.code === 'certificate') && this.hasOthers(used);
  }

  /** Resolves with true if there are now other credentials than those of a refused call. */
  private async hasOthers({ connections, authorization }: Used): Promise<boolean> {
    if (connections === this.connections) this.readAgain(READ_INTERVAL_MS);
    if (connections !== this.connections) return true;
    return (await connections.authorization().catch(() => authorization)) !== authorization;
  }

  /**
   * Reads the files if the last read was this long ago (ms). Uses the present access instead of the former one if it is
   * valid and of the same server.
   */
  private readAgain(ageMs: number): void {
    const { env, clock, log, readAccess } = this.options;
    const now = clock.monotonic();
    if (now - this.readAt < ageMs) return;
    this.readAt = now;
    const former = this.connections;
    former.expireToken();
    try {
      const access = readAccess();
      if (isDeepStrictEqual(access, former.access)) return;
      const { server, source } = access;
      // Another cluster does not have the nodes of this one.
      if (server !== former.access.server) {
        log.warn('The kubeconfig names another server; restart the launcher to use it', { server, source });
        return;
      }
      this.connections = new Connections(access, env, clock);
      log.info('The credentials of the cluster have changed', { source });
    } catch (error) {
      log.warn('The kubeconfig cannot be used; its former credentials are used', { error: toDriverError(error) });
      return;
    }
    // Calls and watches in progress continue until they end.
    former.close().catch((error: unknown) => log.warn('Connections could not be closed', { error }));
  }
}
