/**
 * Address and login of a node for ssh. Records in ZooKeeper are not trusted: their text must not become ssh options.
 */

import type { JsonObject } from '@nodepool/core';
import { isIP } from 'node:net';
import { SshError } from './ssh-error.js';

/** A machine that ssh can log in to. */
export interface SshTarget {
  readonly user: string;
  readonly address: string;
  readonly port: number;
  /** Lines of a `known_hosts` file. */
  readonly knownHosts: readonly string[];
}

/** The login of a node, as its record has it. */
export interface Login {
  readonly address: string | null;
  readonly connectionPort: number | JsonObject | null;
  readonly connectionType: string | null;
  readonly shellType: string | null;
  readonly username: string | null;
  readonly hostKeys: readonly string[];
}

/** A node that ssh can log in to. */
export interface NodeTarget extends SshTarget {
  readonly id: string;
}

const HOST_NAME = /^[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?$/;
const USER_NAME = /^[A-Za-z0-9_][A-Za-z0-9_.@+-]*\$?$/;
const HOST_KEY = /^[A-Za-z0-9][A-Za-z0-9@.-]* [A-Za-z0-9+/]+={0,3}$/;
const DEFAULT_PORT = 22;
/** Shell types whose commands have another syntax than that of POSIX shells. */
const FOREIGN_SHELLS = ['cmd', 'powershell'];

/** Returns the target, or the reason why no command can be run there over ssh. */
export function loginOf(login: Login): SshTarget | { readonly refused: string } {
  const { address, connectionPort, connectionType, shellType, username: user, hostKeys } = login;
  const refuse = (refused: string): { readonly refused: string } => ({ refused });
  if (connectionType !== null && connectionType !== 'ssh')
    return refuse(`its connection type is ${quoted(connectionType)}; commands need ssh`);
  if (shellType !== null && FOREIGN_SHELLS.includes(shellType))
    return refuse(`its shell is ${shellType}; commands need a POSIX shell`);
  const port = connectionPort ?? DEFAULT_PORT;
  if (typeof port !== 'number' || !Number.isInteger(port) || port < 1 || port > 65_535)
    return refuse('it has no port for ssh');
  if (address === null) return refuse('it has no address');
  if (!isHost(address)) return refuse(`${quoted(address)} is not an address`);
  if (user === null) return refuse('its image has no user name');
  if (!USER_NAME.test(user)) return refuse(`${quoted(user)} is not a user name`);
  if (hostKeys.length === 0) return refuse('its host keys are unknown; set `host-key-checking: true` in its pool');
  const unusable = hostKeys.find((key) => !HOST_KEY.test(key));
  if (unusable !== undefined) return refuse(`${quoted(unusable)} is not a host key`);
  const host = port === DEFAULT_PORT ? address : `[${address}]:${port}`;
  return { user, address, port, knownHosts: hostKeys.map((key) => `${host} ${key}`) };
}

/**
 * Returns the target; `user` replaces the user name of the record. Throws `SshError` if the node has no ssh server for
 * commands, or a record that is unsafe.
 */
export function sshTarget(node: Login & { readonly id: string }, user: string | undefined): NodeTarget {
  const { id } = node;
  const login = loginOf({ ...node, username: user ?? node.username });
  if (!('refused' in login)) return { id, ...login };
  const hint = user === undefined && node.username === null ? '; give one with --user' : '';
  throw new SshError(`cannot run a command on node ${id}: ${login.refused}${hint}`);
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
