/** A ZooKeeper server in memory, for tests and simulations: the same client interface, on a clock and with faults of the caller's choice. */
export {
  SimulatedZooKeeperServer,
  type ServerSnapshot,
  type SimulatedClientOptions,
  type SimulatedServerOptions,
} from './server.js';
export type { ServerSession } from './session-table.js';
export type { DumpedZnode } from './znode-tree.js';
