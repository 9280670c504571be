/** A ZooKeeper client: its interface (`ZooKeeper`), its implementation (`connect`), and recipes. */
export * from './api.js';
export * from './clock.js';
export * from './errors.js';
export * from './recipes-api.js';
export { connect } from './client/client.js';
export type { ClientOptions, ClientTlsOptions, Pem } from './client/options.js';
export { lockHolder } from './adoption.js';
export { lockRecipe, type LockRecipeOptions, type Locks } from './lock.js';
export { firstContender, isContended, sortedContenders, type Contender } from './lock-names.js';
export { election, type ElectionOptions } from './election.js';
export { ensurePath } from './ensure-path.js';
export { treeCache, type TreeCacheSettings } from './tree-cache.js';
