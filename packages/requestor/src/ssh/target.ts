/** Address and login of a node for ssh. Texts of records are not trusted: they must not become ssh options. */

import { isIP } from 'node:net';
import type { LeasedNode } from '../api.js';
import { SshError } from './ssh-client.js';

export interface SshTarget {
  readonly id: string;
  readonly user: string;
  readonly address: string;
  readonly port: number;
  /** Lines of a `known_hosts` file. */
  readonly knownHosts: readonly string[];
}

const HOST_NAME = /^[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?$/;
const USER_NAME = /^[A-Za-z0-9_][A-Za-z0-9_.@+-]*\$?$/;
const HOST_KEY = /^[A-Za-z0-9][A-Za-z0-9@.-]* [A-Za-z0-9+/]+={0,3}$/;
const DEFAULT_PORT = 22;
/** Shell types whose commands have another syntax than that of POSIX shells. */
const FOREIGN_SHELLS = ['cmd', 'powershell'];

/** Returns the target. Throws `SshError` if the node has no ssh server for commands, or a record that is unsafe. */
export function sshTarget(node: LeasedNode, user: string | undefined): SshTarget {
  const { id, address, connectionPort, connectionType, shellType } = node;
  const refuse = (reason: string): never => {
    throw new SshError(`cannot run a command on node ${id}: ${reason}`);
  };
  if (connectionType !== null && connectionType !== 'ssh') {
    return refuse(`its connection type is ${quoted(connectionType)}; commands need ssh`);
  }
  if (shellType !== null && FOREIGN_SHELLS.includes(shellType)) {
    return refuse(`its shell is ${shellType}; commands need a POSIX shell`);
  }
  const port = connectionPort ?? DEFAULT_PORT;
  if (typeof port !== 'number' || !Number.isInteger(port) || port < 1 || port > 65_535) {
    return refuse('it has no port for ssh');
  }
  if (address === null) return refuse('it has no address');
  if (!isHost(address)) return refuse(`${quoted(address)} is not an address`);
  const name = user ?? node.username;
  if (name === null) return refuse('its image has no user name; give one with --user');
  if (!USER_NAME.test(name)) return refuse(`${quoted(name)} is not a user name`);
  if (node.hostKeys.length === 0) {
    return refuse('its host keys are unknown; set `host-key-checking: true` in its pool');
  }
  const unusable = node.hostKeys.find((key) => !HOST_KEY.test(key));
  if (unusable !== undefined) return refuse(`${quoted(unusable)} is not a host key`);
  const host = port === DEFAULT_PORT ? address : `[${address}]:${port}`;
  return { id, user: name, address, port, knownHosts: node.hostKeys.map((key) => `${host} ${key}`) };
}

/** Returns the address as scp and rsync need it in front of a colon. */
export function bracketed(address: string): string {
  return isIP(address) === 6 ? `[${address}]` : address;
}

function isHost(address: string): boolean {
  // An IPv6 zone (`%eth0`) may contain any text.
  return (isIP(address) !== 0 && !address.includes('%')) || HOST_NAME.test(address);
}

function quoted(text: string): string {
  return JSON.stringify(text.slice(0, 100));
}
