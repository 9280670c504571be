import { readFileSync } from 'node:fs';
import { systemClock, type Clock } from '../clock.js';
import { InvalidArgumentError } from '../errors.js';
import { openConnection, type OpenWire, type TlsSettings } from './connection.js';
import { Chroot } from './paths.js';
import { parseServers, type ServerAddress } from './server-list.js';

/** A PEM text, its bytes, or the path of a PEM file (a text without `-----BEGIN`). */
export type Pem = string | Uint8Array;

/** TLS options of a client. `cert` and `key` must be given together. */
export interface ClientTlsOptions {
  /** Authorities that may sign the server's certificate. Default: those that Node.js trusts. */
  readonly ca?: Pem;
  /** The client's certificate. ZooKeeper requires one by default. */
  readonly cert?: Pem;
  readonly key?: Pem;
  /** Name that the server's certificate must have. Default: the host of the server. */
  readonly servername?: string;
  /**
   * False to accept a certificate of the authorities for any host, e.g. if servers are reached by an address or an
   * alias that is not in their certificates. Default true.
   */
  readonly verifyHostname?: boolean;
}

export interface ClientOptions {
  /** `host:port,[::1]:port/chroot`, or a list. Default port 2181, with `tls` 2281. Clients shuffle the list. */
  readonly servers: string | readonly string[];
  /** Path that the client prepends to all paths. Default: the one in `servers`, if any. */
  readonly chroot?: string;
  /** Proposed session timeout, milliseconds. The server may shorten or extend it. Default 10000. */
  readonly sessionTimeoutMs?: number;
  /** Timeout of calls without `timeoutMs`, milliseconds. Default 30000. */
  readonly operationTimeoutMs?: number;
  /**
   * Milliseconds for one server to accept the connection and confirm the session. Default: the session timeout divided
   * by the number of servers plus one.
   */
  readonly connectTimeoutMs?: number;
  readonly tls?: ClientTlsOptions;
  /** Credentials to send on every connection, e.g. `{ scheme: 'digest', auth: 'user:password' }`. */
  readonly auth?: readonly { readonly scheme: string; readonly auth: string | Uint8Array }[];
  /** Largest request, bytes. Must not exceed the servers' `jute.maxbuffer`. Default 1048575. */
  readonly maxPacketBytes?: number;
  /** Largest accepted answer, bytes. Default 16777216. */
  readonly maxAnswerBytes?: number;
  /**
   * Limits of unanswered calls and of the bytes of their requests. Further calls reject with `OverloadedError`; above
   * half of a limit `writable` is false. Default 100000 calls and 67108864 bytes.
   */
  readonly maxPendingCalls?: number;
  readonly maxPendingBytes?: number;
  /**
   * Accept a session with a server that has lost its quorum and only serves reads (its `readonlymode.enabled`). The
   * client then searches for a read-write server in the background. See `Session.readOnly`. Default false.
   */
  readonly readOnly?: boolean;
  /**
   * First and last delay after all servers failed, milliseconds. The delay doubles each time, and is randomised between
   * half of it and all of it. Default 100 and 2000.
   */
  readonly reconnectDelayMs?: readonly [number, number];
  /** Default: the system clock. */
  readonly clock?: Clock;
  /** Uniform in [0, 1). Default `Math.random`. */
  readonly random?: { next(): number };
}

/** Validated options with all defaults. */
export interface Settings {
  readonly servers: readonly ServerAddress[];
  readonly chroot: Chroot;
  readonly sessionTimeoutMs: number;
  readonly operationTimeoutMs: number;
  /** If undefined, it depends on the number of servers. */
  readonly connectTimeoutMs: number | undefined;
  readonly tls: TlsSettings | undefined;
  readonly auth: readonly { readonly scheme: string; readonly auth: Uint8Array }[];
  readonly maxPacketBytes: number;
  readonly maxAnswerBytes: number;
  readonly maxPendingCalls: number;
  readonly maxPendingBytes: number;
  readonly readOnly: boolean;
  /** Parses a new list of servers. Throws `InvalidArgumentError` if it is malformed or has another chroot. */
  parseServers(servers: string | readonly string[]): readonly ServerAddress[];
  readonly firstReconnectDelayMs: number;
  readonly lastReconnectDelayMs: number;
  readonly clock: Clock;
  readonly random: () => number;
  readonly openWire: OpenWire;
}

const DEFAULT_PORT = 2181;
const DEFAULT_TLS_PORT = 2281;
const JUTE_MAX_BUFFER = 0xfffff;
const MAX_ANSWER_BYTES = 16 * 1024 * 1024;
const MAX_PENDING_CALLS = 100_000;
const MAX_PENDING_BYTES = 64 * 1024 * 1024;
/** Limit of timeouts, milliseconds: the protocol has 32-bit integers. */
const MAX_TIMEOUT_MS = 2 ** 31 - 1;

/** Validates options. Throws `InvalidArgumentError`, which names the invalid option. */
export function resolveOptions(options: ClientOptions, openWire: OpenWire = openConnection): Settings {
  const defaultPort = options.tls === undefined ? DEFAULT_PORT : DEFAULT_TLS_PORT;
  const { servers, chroot: chrootOfServers } = parseServers(options.servers, defaultPort);
  const chroot = new Chroot(options.chroot ?? chrootOfServers);
  const sessionTimeoutMs = positive('sessionTimeoutMs', options.sessionTimeoutMs ?? 10_000);
  const [first, last] = options.reconnectDelayMs ?? [100, 2000];
  const { random } = options;
  return {
    servers,
    chroot,
    parseServers: (text) => newServers(text, defaultPort, chroot),
    sessionTimeoutMs,
    operationTimeoutMs: positive('operationTimeoutMs', options.operationTimeoutMs ?? 30_000),
    connectTimeoutMs:
      options.connectTimeoutMs === undefined ? undefined : positive('connectTimeoutMs', options.connectTimeoutMs),
    tls: options.tls === undefined ? undefined : tlsSettings(options.tls),
    auth: (options.auth ?? []).map(({ scheme, auth }) => ({ scheme, auth: Buffer.from(auth) })),
    maxPacketBytes: positive('maxPacketBytes', options.maxPacketBytes ?? JUTE_MAX_BUFFER),
    maxAnswerBytes: positive('maxAnswerBytes', options.maxAnswerBytes ?? MAX_ANSWER_BYTES),
    maxPendingCalls: positive('maxPendingCalls', options.maxPendingCalls ?? MAX_PENDING_CALLS),
    maxPendingBytes: positive('maxPendingBytes', options.maxPendingBytes ?? MAX_PENDING_BYTES),
    readOnly: options.readOnly ?? false,
    firstReconnectDelayMs: positive('reconnectDelayMs', first),
    lastReconnectDelayMs: positive('reconnectDelayMs', last),
    clock: options.clock ?? systemClock,
    random: random === undefined ? Math.random : () => random.next(),
    openWire,
  };
}

function newServers(text: string | readonly string[], defaultPort: number, chroot: Chroot): readonly ServerAddress[] {
  const parsed = parseServers(text, defaultPort);
  if (parsed.chroot === '' || new Chroot(parsed.chroot).toServer('/') === chroot.toServer('/')) return parsed.servers;
  const message = `servers: the chroot cannot be changed from ${chroot.toServer('/')} to ${parsed.chroot}; leave it out`;
  throw new InvalidArgumentError('invalid-argument', message);
}

function positive(name: string, value: number): number {
  if (value > 0 && value <= MAX_TIMEOUT_MS) return value;
  throw new InvalidArgumentError('invalid-argument', `${name} must be between 0 and ${MAX_TIMEOUT_MS}, not ${value}`);
}

function tlsSettings(options: ClientTlsOptions): TlsSettings {
  const { ca, cert, key, servername, verifyHostname = true } = options;
  if ((cert === undefined) !== (key === undefined)) {
    throw new InvalidArgumentError('invalid-argument', 'tls.cert and tls.key must be given together, or neither');
  }
  return {
    servername,
    verifyHostname,
    material: () => ({
      ...(ca === undefined ? {} : { ca: pemBytes('tls.ca', ca) }),
      ...(cert === undefined ? {} : { cert: pemBytes('tls.cert', cert) }),
      ...(key === undefined ? {} : { key: pemBytes('tls.key', key) }),
    }),
  };
}

function pemBytes(name: string, pem: Pem): Buffer {
  if (typeof pem !== 'string') return Buffer.from(pem);
  if (pem.includes('-----BEGIN')) return Buffer.from(pem);
  try {
    return readFileSync(pem);
  } catch (error) {
    throw new InvalidArgumentError(
      'invalid-argument',
      `${name}: cannot read ${pem}; give a PEM text or a readable file`,
      {
        cause: error,
      },
    );
  }
}
