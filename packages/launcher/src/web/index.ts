/** The launcher's web endpoint. */
export type { WebContext, WebRoutes } from './context.js';
export { createWebServer, type WebServer } from './server.js';
export type { StatusSources } from './status/index.js';
