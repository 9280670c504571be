/** The web endpoints of the daemons; a separate entry point, since other programs do not load the HTTP server. */
export { BadQueryError, sendError } from './errors.js';
export type { HttpApp, HttpReply, HttpRequest, Route } from './http-app.js';
export {
  addMetricsPage,
  createHttpServer,
  type EndpointAddress,
  type HttpServer,
  type HttpServerOptions,
} from './http-server.js';
export { answerFormat, type AnswerFormat } from './negotiate.js';
export { addReadyProbe } from './probes.js';
