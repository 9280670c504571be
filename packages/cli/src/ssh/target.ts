/** The ssh login of a leased node. */

import { loginOf, type SshTarget as LoginTarget } from '@nodepool/daemon/ssh';
import type { LeasedNode } from '@nodepool/requestor';
import { isIP } from 'node:net';
import { CommandError } from '../command-context.js';

/** A node that ssh can log in to. */
export interface SshTarget extends LoginTarget {
  readonly id: string;
}

/** Returns the target. Throws `CommandError` if the node has no ssh server for commands, or a record that is unsafe. */
export function sshTarget(node: LeasedNode, user: string | undefined): SshTarget {
  const { id } = node;
  const login = loginOf({ ...node, username: user ?? node.username });
  if (!('refused' in login)) return { id, ...login };
  const hint = user === undefined && node.username === null ? '; give one with --user' : '';
  throw new CommandError(`cannot run a command on node ${id}: ${login.refused}${hint}`);
}

/** Returns the address as scp and rsync need it in front of a colon. */
export function bracketed(address: string): string {
  return isIP(address) === 6 ? `[${address}]` : address;
}
