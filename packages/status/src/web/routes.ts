/** Routes that several programs serve: the entry point `@nodepool/status/routes`, which loads no status page. */
export { imageRoutes } from './images.js';
export { probeRoutes } from './probes.js';
