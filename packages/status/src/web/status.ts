/**
 * `/`: the status page, and its files below `/status/`. The documents of its views are served as a stream
 * (`/status/events`) or as JSON (`/status/now` for the page, `/status/v1/…` for programs).
 */

import { BadQueryError, sendError, type HttpReply, type HttpRequest, type Route } from '@nodepool/daemon/web';
import type { WebRoutes } from './context.js';
import { loadAssets, type Asset } from './assets.js';
import { documentRoutes } from './document-routes.js';
import { StatusFeed } from './feed.js';
import { NodeCounts } from '../documents/node-counts.js';
import type { Observed } from '../documents/sources.js';
import { ScaleSetRecords } from './scale-set-records.js';
import { reportStatus } from './status-metrics.js';
import { viewDocument } from '../documents/views.js';

export type { StatusSources } from '../documents/sources.js';

/** Number of streams; further viewers poll every few seconds instead. */
const MAX_VIEWERS = 100;
const MAX_VIEW_LENGTH = 2000;
const MOMENT_MS = 1000;

/** The security policy lets the page load and run only its own files, whatever text a record contains. */
const PAGE_HEADERS = {
  'Content-Security-Policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'",
  'Referrer-Policy': 'no-referrer',
  'X-Content-Type-Options': 'nosniff',
  'Cache-Control': 'no-cache',
};

export const statusRoutes: WebRoutes = (app, { store, clock, log, isReady, metrics, explain, status }) => {
  if (explain === undefined || status === undefined) return;
  const counts = new NodeCounts(status.recorder.nodes);
  const records = new ScaleSetRecords(store.zooKeeper, clock, (error) =>
    log.warn('The records of GitHub Actions could not be read; retrying', { error }),
  );
  let moment: { readonly observed: Observed; readonly at: number } | undefined;
  /** The views share what they compute for a moment of up to a second. */
  const observe = (): Observed => {
    const at = clock.monotonic();
    if (moment === undefined || at - moment.at >= MOMENT_MS) {
      const activity = explain.activity();
      const scaleSets = { scaleSets: () => records.read(), scaleSetCount: records.size };
      const observed = {
        ...{ store, clock, isReady, counts, status },
        ...explain,
        ...scaleSets,
        activity: () => activity,
      };
      moment = { observed, at };
    }
    return moment.observed;
  };
  const make = (view: string): object | undefined => viewDocument(observe, view);
  const feed = new StatusFeed(clock, make, MAX_VIEWERS, (error) => {
    log.error('The status page could not be brought up to date', error);
  });
  documentRoutes(app, clock, observe);
  const endReports = metrics === undefined ? undefined : reportStatus(metrics, observe);
  app.addHook('preClose', (done) => {
    endReports?.();
    feed.close();
    records.close();
    done();
  });

  let assets: ReadonlyMap<string, Asset> | undefined;
  const send = (request: HttpRequest, reply: HttpReply, name: string): HttpReply => {
    const asset = (assets ??= loadAssets()).get(name);
    if (asset === undefined) return sendError(request, reply, 404, 'the status page has no such file');
    void reply.headers({ ...PAGE_HEADERS, ETag: asset.etag });
    if (request.headers['if-none-match'] === asset.etag) return reply.code(304).send();
    return reply.type(asset.type).send(asset.body);
  };
  app.get<Route>('/', (request, reply) => send(request, reply, 'index.html'));
  app.get<Route>('/status/:file', (request, reply) => send(request, reply, request.params['file'] ?? ''));
  app.get<Route>('/status/now', (request, reply) => {
    const message = feed.message(viewOf(request));
    if (message === undefined) return sendError(request, reply, 404, 'the status page has no such view');
    return reply.type('application/json').header('Cache-Control', 'no-store').send(message);
  });
  app.get<Route>('/status/events', { exposeHeadRoute: false }, (request, reply) => {
    const view = viewOf(request);
    // An invalid view is answered before the stream begins.
    if (feed.message(view) === undefined) return sendError(request, reply, 404, 'the status page has no such view');
    if (!feed.ensureCapacity()) {
      return sendError(request, reply, 503, `${MAX_VIEWERS} viewers have just connected; read /status/now`);
    }
    reply.hijack();
    reply.raw.writeHead(200, {
      'Content-Type': 'text/event-stream',
      'Cache-Control': 'no-store',
      // Keeps proxies such as nginx from buffering the stream.
      'X-Accel-Buffering': 'no',
    });
    feed.add(reply.raw, view);
    return reply;
  });
};

/** Returns the requested view, e.g. `nodes?state=ready`; default: the overview. */
function viewOf({ query: { view = 'overview' } }: HttpRequest): string {
  if (typeof view !== 'string') throw new BadQueryError('view: given more than once');
  if (view.length > MAX_VIEW_LENGTH) throw new BadQueryError(`view: longer than ${MAX_VIEW_LENGTH} characters`);
  return view;
}
