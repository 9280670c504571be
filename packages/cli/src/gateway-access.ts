/** Access to the gateway and to the nodes of its leases, for the programs that use leases over HTTP. */

import { readFileSync } from 'node:fs';
import {
  isJsonObject,
  fileFaultOf,
  reasonOf,
  systemClock,
  systemRandom,
  printable,
  type Clock,
  type RandomSource,
} from '@nodepool/core';
import {
  GatewayUnreachableError,
  LeaseClient,
  LeaseEndedError,
  LeaseRequestError,
  type NodeDocument,
} from '@nodepool/requestor/http';
import { CommandError, ExitCode, UsageError } from './command-context.js';
import { sshTarget, type NodeTarget } from '@nodepool/daemon/ssh';

export interface GatewayOptions {
  /** Default: $NODEPOOL_GATEWAY. */
  readonly gateway?: string;
  /** Default: $NODEPOOL_TOKEN_FILE, or the token $NODEPOOL_TOKEN. */
  readonly tokenFile?: string;
}

export interface GatewayIo {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly clock?: Clock;
  readonly random?: RandomSource;
}

/** Reads the address and the token. Throws `UsageError`. */
export function gatewayClient(
  { env, clock = systemClock, random = systemRandom }: GatewayIo,
  { gateway = env['NODEPOOL_GATEWAY'], tokenFile = env['NODEPOOL_TOKEN_FILE'] }: GatewayOptions,
): LeaseClient {
  if (gateway === undefined)
    throw new UsageError('set NODEPOOL_GATEWAY or --gateway, e.g. https://nodepool.example.org:8007');
  const url = URL.parse(gateway);
  if (url?.protocol !== 'https:' && url?.protocol !== 'http:')
    throw new UsageError(`${gateway} is not the address of a gateway`);
  const token = env['NODEPOOL_TOKEN'];
  if (tokenFile === undefined && token === undefined)
    throw new UsageError('set NODEPOOL_TOKEN_FILE, --token-file or NODEPOOL_TOKEN');
  return new LeaseClient({
    url: gateway,
    token: tokenFile === undefined ? (token ?? '') : (): string => readToken(tokenFile),
    retryForMs: 30_000,
    ...{ clock, random },
  });
}

/** Returns the ssh login of a leased node. Throws `CommandError`. */
export function leasedTarget(node: NodeDocument, user: string | undefined): NodeTarget {
  return sshTarget(
    {
      ...{ id: node.id, address: node.address, username: node.username, hostKeys: node.host_keys },
      ...{ connectionType: node.connection_type, connectionPort: node.connection_port, shellType: node.shell_type },
    },
    user,
  );
}

/** Converts the errors of the client to refusals. */
export function gatewayRefusal(error: unknown): unknown {
  if (error instanceof LeaseRequestError) return new CommandError(printable(error.message), { cause: error });
  if (error instanceof LeaseEndedError) {
    const isLost = error.lease.end?.reason === 'lost';
    return new CommandError(printable(error.message), { cause: error, ...(isLost ? { exitCode: ExitCode.lost } : {}) });
  }
  if (!(error instanceof GatewayUnreachableError)) return error;
  return new CommandError(`${error.message}${causeText(error.cause)}`, { cause: error });
}

function readToken(file: string): string {
  try {
    return readFileSync(file, 'utf8').trim();
  } catch (error) {
    throw new CommandError(`the token file ${file} cannot be read: ${fileFaultOf(error)}`, { cause: error });
  }
}

/** Returns the reason that the HTTP client of Node.js hides in the cause of its error. */
function causeText(error: unknown): string {
  const cause: unknown = error instanceof Error ? error.cause : undefined;
  return isJsonObject(cause) || cause instanceof Error ? ` (${reasonOf(cause)})` : '';
}
