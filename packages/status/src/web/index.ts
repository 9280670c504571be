/** The launcher's web endpoint. */
export type { WebContext, WebRoutes } from './context.js';
export { createWebServer, type WebServer } from './server.js';
export type { StatusSources } from './status.js';
export type * as StatusModel from '../client/model.js';
export { explainLabel } from '../explain/explain-label.js';
export { explainNode } from '../explain/explain-node.js';
export { explainRequest } from '../explain/explain-request.js';
export type { ExplanationSources } from '../explain/explanation.js';
export { explanationText } from '../explain/explanation-text.js';
