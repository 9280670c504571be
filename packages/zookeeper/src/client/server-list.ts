/** The servers of an ensemble: parsing, and the order in which a client tries them. */

import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';
import { InvalidArgumentError } from '../errors.js';

export interface ServerAddress {
  /** Name or IP address, without brackets. */
  readonly host: string;
  readonly port: number;
}

/** A server at one of its IP addresses. */
export interface Endpoint extends ServerAddress {
  readonly ip: string;
}

/**
 * Parses `host:port,[::1]:port/chroot`, or a list of `host:port`. Returns an empty chroot if there is none. Throws
 * `InvalidArgumentError`, which names the invalid entry.
 */
export function parseServers(
  text: string | readonly string[],
  defaultPort: number,
): { readonly servers: readonly ServerAddress[]; readonly chroot: string } {
  const joined = typeof text === 'string' ? text : text.join(',');
  const slash = joined.indexOf('/');
  const hosts = slash < 0 ? joined : joined.slice(0, slash);
  const entries = hosts.split(',').map((entry) => entry.trim());
  const servers = entries.filter((entry) => entry !== '').map((entry) => parseServer(entry, defaultPort));
  if (servers.length === 0) throw invalid(joined, 'it names no server');
  return { servers, chroot: slash < 0 ? '' : joined.slice(slash) };
}

function parseServer(entry: string, defaultPort: number): ServerAddress {
  // A bare IPv6 address contains colons; with a port it needs brackets.
  if (isIP(entry) === 6) return { host: entry, port: defaultPort };
  const match = /^(?:\[(?<ipv6>[^\]]+)\]|(?<name>[^:[\]\s]+))(?::(?<port>\d+))?$/.exec(entry);
  const host = match?.groups?.['ipv6'] ?? match?.groups?.['name'];
  if (host === undefined) throw invalid(entry, 'expected host, host:port or [IPv6]:port');
  const port = match?.groups?.['port'] === undefined ? defaultPort : Number(match.groups['port']);
  if (port < 1 || port > 65_535) throw invalid(entry, 'the port must be between 1 and 65535');
  return { host, port };
}

function invalid(entry: string, reason: string): InvalidArgumentError {
  return new InvalidArgumentError('invalid-argument', `servers: ${JSON.stringify(entry)}: ${reason}`);
}

/** Iterates over the servers in random order, so that clients spread over them. */
export class ServerList {
  private servers: ServerAddress[];
  private next = 0;

  constructor(
    servers: readonly ServerAddress[],
    private readonly random: () => number,
  ) {
    this.servers = shuffled(servers, random);
  }

  get size(): number {
    return this.servers.length;
  }

  /** Replaces the servers. New ones come first. */
  replace(servers: readonly ServerAddress[]): void {
    const fresh = servers.filter((server) => !this.has(server));
    const known = servers.filter((server) => this.has(server));
    this.servers = [...shuffled(fresh, this.random), ...shuffled(known, this.random)];
    this.next = 0;
  }

  has({ host, port }: ServerAddress): boolean {
    return this.servers.some((server) => server.host === host && server.port === port);
  }

  take(): ServerAddress {
    const server = this.servers[this.next % this.servers.length];
    if (server === undefined) throw invalid('', 'it names no server');
    this.next = (this.next + 1) % this.servers.length;
    return server;
  }

  /**
   * Resolves with the server's current IP addresses, shuffled. Call it for each attempt, because addresses change.
   * Rejects if the name is unknown.
   */
  async resolve(server: ServerAddress): Promise<readonly Endpoint[]> {
    if (isIP(server.host) !== 0) return [{ ...server, ip: server.host }];
    const addresses = await lookup(server.host, { all: true });
    return shuffled(addresses, this.random).map(({ address }) => ({ ...server, ip: address }));
  }
}

function shuffled<T>(values: readonly T[], random: () => number): T[] {
  const keyed = values.map((value) => ({ value, key: random() }));
  return keyed.sort((one, other) => one.key - other.key).map(({ value }) => value);
}
