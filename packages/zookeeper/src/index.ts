/** A ZooKeeper client: the interface (`ZooKeeper`), the real one, the simulated one, and recipes on both. */
export * from './api.js';
export * from './clock.js';
export * from './errors.js';
export * from './recipes-api.js';
export { connect } from './client/client.js';
export type { ClientOptions, ClientTlsOptions, Pem } from './client/options.js';
export { VirtualClock, type VirtualClockOptions } from './simulated/virtual-clock.js';
export {
  SimulatedZooKeeperServer,
  type ServerSnapshot,
  type SimulatedClientOptions,
  type SimulatedServerOptions,
} from './simulated/server.js';
export type { ServerSession } from './simulated/session-table.js';
export type { DumpedZnode } from './simulated/znode-tree.js';
export { lockRecipe, type LockRecipeOptions, type Locks } from './lock.js';
export { isContended } from './lock-names.js';
export { election, type ElectionOptions } from './election.js';
export { cachedTree, type CachedTreeSettings } from './cached-tree.js';
export { makePath } from './make-path.js';
