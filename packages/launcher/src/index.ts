/** The launcher as a library: what the program is made of, and what tests and simulations run. */
export type { LauncherContext, LoginScanner } from './context.js';
export { Launcher } from './launcher.js';
export { createWebServer, type WebContext, type WebServer } from './web/index.js';
