import { readFile } from 'node:fs/promises';
import { createSecureContext } from 'node:tls';
import type { CallOptions, ClientTlsOptions, ZooKeeper } from '@nodepool/zookeeper';
import { connect, isZooKeeperError } from '@nodepool/zookeeper';
import { fileFaultOf, reasonOf, type Logger, type Clock } from '@nodepool/core';
import { logConnection } from './connection-log.js';

/** The ensemble and its credentials. */
export interface ZooKeeperEndpoint {
  /** `host:port`, IPv6 hosts in brackets. */
  readonly servers: readonly string[];
  /** With leading slash; '' for none. */
  readonly chroot: string;
  /** PEM files of the client's certificate, its key and the CA. */
  readonly tls:
    | {
        readonly certFile: string;
        readonly keyFile: string;
        readonly caFile: string;
        /** False to accept certificates of the CA for any host. Default true. */
        readonly verifyHostname?: boolean | undefined;
      }
    | undefined;
  readonly sessionTimeoutMs: number;
}

export interface ConnectOptions {
  readonly clock: Clock;
  /** Receives connection problems. */
  readonly log: Logger;
  /** Milliseconds until connecting fails. Default: no limit, since the ensemble may start later. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
  /** Called with the reason of each failed attempt to connect. */
  readonly onFailure?: (reason: string) => void;
}

/** No session could be created: no server was reached in time, or none accepted the client. */
export class ZooKeeperUnreachableError extends Error {
  readonly code = 'zookeeper-unreachable';
  constructor(servers: readonly string[], timeoutMs: number, cause: unknown) {
    const why = cause === undefined ? '' : `: ${reasonOf(cause)}`;
    super(
      `ZooKeeper (${servers.join(', ')}) did not answer within ${timeoutMs / 1000} s${why}; ` +
        'check zookeeper-servers and zookeeper-tls in the configuration, and that the servers run and can be reached from here',
      { cause },
    );
    this.name = 'ZooKeeperUnreachableError';
  }
}

/** The ensemble does not have the configured chroot. */
export class ZooKeeperChrootError extends Error {
  readonly code = 'zookeeper-chroot';
  /** The message has both. */
  readonly reason: string;
  readonly remedy: string;

  constructor(servers: readonly string[], chroot: string) {
    const reason = `the chroot ${chroot} does not exist in ZooKeeper (${servers.join(', ')})`;
    const remedy = `correct it in zookeeper-servers, or create it with ZooKeeper's own client: ${creations(chroot)}`;
    super(`${reason}; ${remedy}`);
    this.name = 'ZooKeeperChrootError';
    this.reason = reason;
    this.remedy = remedy;
  }
}

/** Returns the commands that create a path, parents first. */
function creations(path: string): string {
  const names = path.split('/').slice(1);
  return names.map((_, index) => `create /${names.slice(0, index + 1).join('/')}`).join(', ');
}

/** A file of `zookeeper-tls` is not usable. */
export class TlsFilesError extends Error {
  readonly code = 'tls-files';
  constructor(what: string, reason: string, cause: unknown) {
    super(
      `${what}: ${reason}; ZooKeeper needs a client certificate, its key and the CA, each as a PEM file that this user can read`,
      {
        cause,
      },
    );
    this.name = 'TlsFilesError';
  }
}

/**
 * Resolves with a client that has a session. Rejects with `TlsFilesError`, `ZooKeeperUnreachableError`,
 * `ZooKeeperChrootError`, the signal's reason, or a `ZooKeeperError`; then nothing stays open.
 */
export async function connectToZooKeeper(config: ZooKeeperEndpoint, options: ConnectOptions): Promise<ZooKeeper> {
  const { tls } = config;
  if (tls !== undefined) await checkTlsFiles(tls);
  const zooKeeper = connect({
    servers: config.servers,
    ...(config.chroot === '' ? {} : { chroot: config.chroot }),
    sessionTimeoutMs: config.sessionTimeoutMs,
    // Paths, because the client reads the files for each connection and so uses renewed certificates.
    ...(tls === undefined ? {} : { tls: tlsOptions(tls) }),
    clock: options.clock,
  });
  logConnection(zooKeeper, options.clock, options.log.named('nodepool.zookeeper'));
  zooKeeper.on('warning', ({ message }) => {
    if (zooKeeper.state !== 'connected') options.onFailure?.(message);
  });
  const limits = {
    timeoutMs: options.timeoutMs ?? Infinity,
    ...(options.signal === undefined ? {} : { signal: options.signal }),
  };
  try {
    await zooKeeper.connected(limits);
    if (config.chroot !== '') await checkChroot(zooKeeper, config, limits);
    return zooKeeper;
  } catch (error) {
    await zooKeeper.close();
    options.signal?.throwIfAborted();
    if (options.timeoutMs === undefined || !isZooKeeperError(error, 'timeout')) throw error;
    throw new ZooKeeperUnreachableError(config.servers, options.timeoutMs, error.cause);
  }
}

function tlsOptions({
  caFile,
  certFile,
  keyFile,
  verifyHostname = true,
}: NonNullable<ZooKeeperEndpoint['tls']>): ClientTlsOptions {
  return { ca: caFile, cert: certFile, key: keyFile, verifyHostname };
}

async function checkChroot(zooKeeper: ZooKeeper, config: ZooKeeperEndpoint, limits: CallOptions): Promise<void> {
  // A lagging server might not have a chroot that was just created.
  await zooKeeper.sync('/', limits);
  if ((await zooKeeper.exists('/', limits)) === undefined)
    throw new ZooKeeperChrootError(config.servers, config.chroot);
}

async function checkTlsFiles(tls: NonNullable<ZooKeeperEndpoint['tls']>): Promise<void> {
  const cert = await readPem('cert', tls.certFile);
  const key = await readPem('key', tls.keyFile);
  const ca = await readPem('ca', tls.caFile);
  try {
    createSecureContext({ cert, key, ca });
  } catch (error) {
    const files = `${tls.certFile}, ${tls.keyFile}, ${tls.caFile}`;
    throw new TlsFilesError(`zookeeper-tls (${files})`, `cannot be used together: ${reasonOf(error)}`, error);
  }
}

async function readPem(option: string, file: string): Promise<Buffer> {
  let pem: Buffer;
  try {
    pem = await readFile(file);
  } catch (error) {
    throw new TlsFilesError(`zookeeper-tls.${option}`, `cannot read ${file}: ${fileFaultOf(error)}`, error);
  }
  if (!pem.includes('-----BEGIN '))
    throw new TlsFilesError(`zookeeper-tls.${option}`, `${file} is not a PEM file`, undefined);
  return pem;
}
