/** A ZooKeeper server in memory, with injected faults and a virtual clock, for tests and simulations. */
export type { ServerSnapshot, SimulatedClientOptions, SimulatedServerOptions } from './server.js';
export { SimulatedZooKeeperServer } from './server.js';
export type { ServerSession } from './session-table.js';
export type { DumpedZnode } from './znode-tree.js';
