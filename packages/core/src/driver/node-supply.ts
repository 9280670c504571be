/** The parts of `ProviderContext` for drivers of existing machines. */

import type { Call } from './call.js';
import type { Connection } from './provider-config.js';

/** Maintains ready nodes for the machines of a provider, whose configuration has `createsNodes: false`. */
export interface NodeSupply {
  /**
   * Declares all machines of the provider, replacing those of an earlier call. Launchers register exactly one ready
   * node per slot, and a new one after each use and deletion. Changed settings apply to free nodes at once and to other
   * nodes after their use; free nodes of machines that are no longer declared are withdrawn.
   */
  apply(machines: readonly SuppliedMachine[]): void;
}

/** A machine whose slots become ready nodes. Host name, user and port identify it within its provider. */
export interface SuppliedMachine {
  /** Pool whose requests the nodes serve. */
  readonly pool: string;
  /** Name or address. */
  readonly hostname: string;
  readonly connection: Connection & { readonly port: number };
  /** Labels of each node. */
  readonly labels: readonly string[];
  /** Number of nodes that can be in use at the same time. */
  readonly slots: number;
  /**
   * Resolves with the facts that nodes of a usable machine have. Rejects with a `DriverError` if the machine is not
   * usable; the message is shown as the reason. Called before each registration, before each hand-out, and regularly.
   */
  check(call: Call): Promise<MachineFacts>;
}

export interface MachineFacts {
  /** Host keys, each as `<type> <base64>`. */
  readonly hostKeys: readonly string[];
  readonly publicIpv4?: string | undefined;
  readonly publicIpv6?: string | undefined;
}

/** The login of a machine. */
export interface MachineLogin {
  /** Name or address. */
  readonly host: string;
  readonly port: number;
  /** `ssh` and `network_cli` have host keys; for other types, only the port is checked. */
  readonly connectionType: string;
}

/**
 * Resolves with the host keys (`<type> <base64>`) of the machine, one of each kind, or with none for a connection type
 * without host keys. Retries until the deadline of the call. Rejects with a `DriverError`: `timeout` if the port
 * accepted no connection, `keyscan` if it gave no keys.
 */
export type LoginScan = (login: MachineLogin, call: Call) => Promise<readonly string[]>;
