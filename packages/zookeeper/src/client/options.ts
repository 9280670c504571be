/** What a client can be told, checked and completed once. */

import { readFileSync } from 'node:fs';
import { systemClock, type Clock } from '../clock.js';
import { InvalidArgumentError } from '../errors.js';
import { openConnection, type OpenWire, type TlsSettings } from './connection.js';
import { Chroot } from './paths.js';
import { parseServers, type ServerAddress } from './server-list.js';

/** PEM texts, their bytes, or paths of PEM files (a text that has no `-----BEGIN` in it). */
export type Pem = string | Uint8Array;

export interface ClientTlsOptions {
  /** Who may sign the server's certificate. Default: the authorities that Node.js trusts. */
  readonly ca?: Pem;
  /** The client's certificate; ZooKeeper demands one unless it is configured otherwise. */
  readonly cert?: Pem;
  readonly key?: Pem;
  /** The name that the server's certificate must have. Default: the host that is connected to. */
  readonly servername?: string;
}

export interface ClientOptions {
  /**
   * `host:port,[::1]:port/chroot`, or a list of `host:port`. The port defaults to 2181, with `tls` to 2281. The order
   * does not matter: each client shuffles it.
   */
  readonly servers: string | readonly string[];
  /** Path below which everything is. Default: the one in `servers`, if any. */
  readonly chroot?: string;
  /** Proposed to the server, which may shorten or extend it. Default 10000. */
  readonly sessionTimeoutMs?: number;
  /** Deadline of calls that name none. Default 30000. */
  readonly operationTimeoutMs?: number;
  /**
   * Time for one server to accept the connection and to confirm the session. Default: the session timeout divided by
   * one more than the number of servers.
   */
  readonly connectTimeoutMs?: number;
  readonly tls?: ClientTlsOptions;
  /** Credentials, sent on every connection, e.g. `{ scheme: 'digest', auth: 'user:password' }`. */
  readonly auth?: readonly { readonly scheme: string; readonly auth: string | Uint8Array }[];
  /** Largest request, as the server's `jute.maxbuffer`. Default 1048575. */
  readonly maxPacketBytes?: number;
  /** Largest answer. Default 16777216. */
  readonly maxAnswerBytes?: number;
  /**
   * How many calls may wait for their answers, and how many bytes their requests may have: more are refused with
   * `OverloadedError`. From half of it on `writable` is false. Default 100000 calls and 67108864 bytes.
   */
  readonly maxPendingCalls?: number;
  readonly maxPendingBytes?: number;
  /**
   * Whether a new session may be one at a server that only serves reads because it has lost the rest of its ensemble
   * (and is configured to do so: `readonlymode.enabled`). Then a server that takes writes is looked for in the
   * background. See `Session.readOnly`. Default false.
   */
  readonly readOnly?: boolean;
  /**
   * Waiting time after all servers failed: from the first to the second value, doubled each time, of which a random
   * part (half at least) is taken. Default 100 to 2000.
   */
  readonly reconnectDelayMs?: readonly [number, number];
  readonly clock?: Clock;
  /** Uniform in [0, 1). Default `Math.random`. */
  readonly random?: { next(): number };
}

/** Options with every default filled in. */
export interface Settings {
  readonly servers: readonly ServerAddress[];
  readonly chroot: Chroot;
  readonly sessionTimeoutMs: number;
  readonly operationTimeoutMs: number;
  /** Undefined: depends on the number of servers. */
  readonly connectTimeoutMs: number | undefined;
  readonly tls: TlsSettings | undefined;
  readonly auth: readonly { readonly scheme: string; readonly auth: Uint8Array }[];
  readonly maxPacketBytes: number;
  readonly maxAnswerBytes: number;
  readonly maxPendingCalls: number;
  readonly maxPendingBytes: number;
  readonly readOnly: boolean;
  /** A new list of servers. Throws `InvalidArgumentError`, also when it has another chroot. */
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
/** Timeouts travel as 32-bit integers. */
const LONGEST_MS = 2 ** 31 - 1;

/** Throws `InvalidArgumentError` naming the option that is wrong. */
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
  if (value > 0 && value <= LONGEST_MS) return value;
  throw new InvalidArgumentError('invalid-argument', `${name} must be between 0 and ${LONGEST_MS}, not ${value}`);
}

function tlsSettings(options: ClientTlsOptions): TlsSettings {
  const { ca, cert, key, servername } = options;
  if ((cert === undefined) !== (key === undefined)) {
    throw new InvalidArgumentError('invalid-argument', 'tls.cert and tls.key must be given together, or neither');
  }
  return {
    servername,
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
