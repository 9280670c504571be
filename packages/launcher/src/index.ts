/** The launcher as a library, for the program itself, tests and simulations. */
export type { CapacityOptions, LauncherContext, LauncherOptions, LoginScanner } from './context.js';
export { Launcher } from './launcher.js';
export * from './metrics/launcher-metrics.js';
export { DemandCounter, quarterOf, type Quarter } from './supply/forecast/demand-counter.js';
export { DemandModel } from './supply/forecast/demand-model.js';
export { HeldTarget } from './supply/held-target.js';
