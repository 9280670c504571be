/** The servers of an ensemble: what an operator wrote, and the order in which one client tries them. */

import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';
import { InvalidArgumentError } from '../errors.js';

export interface ServerAddress {
  /** Name or IP address, without brackets. */
  readonly host: string;
  readonly port: number;
}

/** One place to connect to: a server at one of its IP addresses. */
export interface Endpoint extends ServerAddress {
  readonly ip: string;
}

/**
 * Parses `host:port,[::1]:port/chroot`, or a list of `host:port`. Throws `InvalidArgumentError` naming the entry that is
 * wrong. The chroot is empty when there is none.
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
  // A bare IPv6 address has colons of its own; with a port it needs brackets.
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

/** Goes round the servers in an order of its own, so that many clients spread over them. */
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

  /** From now on these, those that are new to it first. */
  replace(servers: readonly ServerAddress[]): void {
    const fresh = servers.filter((server) => !this.has(server));
    const known = servers.filter((server) => this.has(server));
    this.servers = [...shuffled(fresh, this.random), ...shuffled(known, this.random)];
    this.next = 0;
  }

  has({ host, port }: ServerAddress): boolean {
    return this.servers.some((server) => server.host === host && server.port === port);
  }

  /** The next server in line. */
  take(): ServerAddress {
    const server = this.servers[this.next % this.servers.length];
    if (server === undefined) throw invalid('', 'it names no server');
    this.next = (this.next + 1) % this.servers.length;
    return server;
  }

  /**
   * Its IP addresses at this moment, shuffled. Asked for at each attempt, because a server may come back elsewhere.
   * Rejects when the name is unknown.
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
