/** A ZooKeeper client: the interface (`ZooKeeper`), the real one, the simulated one, and recipes on both. */
export * from './api.js';
export * from './clock.js';
export * from './errors.js';
export * from './recipes-api.js';
