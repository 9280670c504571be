export * from './types.js';
export { sameProvider, type ConfigDiff } from './diff.js';
export { configurationPrints } from './fingerprint.js';
export { requiredFormats } from './disk-images.js';
export { watchFiles, type FileWatch, type WatchFiles } from './file-watch.js';
export { loadConfig, type LoadOptions, type LoadResult } from './load.js';
export { formatPath, formatProblem, type ConfigProblem, type KeyPath } from './problems.js';
export { readBySchema, type FileForm } from './read-by-schema.js';
export { configSchema, secureSchema } from './schema.js';
export { splitWords } from './shell-words.js';
export { didYouMean } from './suggest.js';
export { ConfigWatcher, type ConfigWatcherOptions } from './watcher.js';
export { declaredDrivers, type DeclaredDriver } from './discovery/declared.js';
export {
  defaultDriverFolders,
  discoverDriver,
  listInstalledDrivers,
  type DiscoverDriver,
  type DriverSearch,
  type InstalledDriver,
} from './discovery/discovery.js';
export * from './discovery/errors.js';
export type { DriverPackage } from './discovery/load-driver.js';
