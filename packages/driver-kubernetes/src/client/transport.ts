/**
 * HTTP to a cluster. If the cluster refuses the credentials, they are read again, and the call is repeated if they have
 * changed: tokens and certificates are replaced while the launcher runs.
 */

import { isDeepStrictEqual } from 'node:util';
import { answerText, AuthError, headerIn, isUntrusted, toDriverError, type Clock, type Logger } from '@nodepool/core';
import { Connections, type HttpRequest, type Response } from './connections.js';
import type { ClusterAccess, Environment } from './kubeconfig.js';

/** Minimum time between two reads of the credentials after refusals (ms). */
const READ_INTERVAL_MS = 1000;
/** Maximum age of a token that is passed on to Zuul (ms). A former token can remain valid for a while. */
const TOKEN_AGE_MS = 60_000;
const UNAUTHORIZED = 401;

export interface HttpAnswer {
  readonly status: number;
  readonly retryAfter: string | undefined;
  readonly text: string;
}

export interface HttpStream {
  readonly status: number;
  readonly retryAfter: string | undefined;
  readonly body: AsyncIterable<Uint8Array>;
}

export interface TransportOptions {
  readonly access: ClusterAccess;
  /** Reads the access again. Throws `ConfigurationError`. */
  readonly readAccess: () => ClusterAccess;
  readonly env: Environment['env'];
  readonly clock: Clock;
  readonly log: Logger;
}

/** Credentials that a call was sent with. */
interface Used {
  readonly connections: Connections;
  readonly authorization: string | undefined;
}

export class Transport {
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

  async send(message: HttpRequest): Promise<HttpAnswer> {
    const { status, headers, body } = await this.request(message, 'calls');
    return { status, retryAfter: headerIn(headers, 'retry-after'), text: await answerText(body) };
  }

  /** Resolves when the server has accepted the watch. The body ends with an error when the signal aborts. */
  async stream(message: HttpRequest): Promise<HttpStream> {
    const { status, headers, body } = await this.request(message, 'watches');
    return { status, retryAfter: headerIn(headers, 'retry-after'), body };
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

  private async request(message: HttpRequest, use: 'calls' | 'watches', isRepetition = false): Promise<Response> {
    let { connections } = this;
    let authorization: string | undefined;
    try {
      do {
        ({ connections } = this);
        authorization = await connections.authorization();
        // Connections that were replaced in the meantime accept no calls.
      } while (connections !== this.connections);
      const answer = await connections.request(message, use, authorization);
      if (answer.status !== UNAUTHORIZED || isRepetition) return answer;
      if (!(await this.hasOthers({ connections, authorization }))) return answer;
      await answer.body.dump();
    } catch (error) {
      if (isRepetition || !isRefusal(error) || !(await this.hasOthers({ connections, authorization }))) throw error;
    }
    return this.request(message, use, true);
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

/** Returns true for an unreadable token file, and for a certificate of the server that is not trusted. */
function isRefusal(error: unknown): boolean {
  return error instanceof AuthError || isUntrusted(error);
}
