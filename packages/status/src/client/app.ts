/** The status page: follows the route, and redraws the view with the launcher's data. */

import { watchCharts } from './chart.js';
import { every } from './clock.js';
import { Connection, type Liveness } from './connection.js';
import { show, type Child } from './dom.js';
import { syncFilters, watchFilters } from './filters.js';
import { missingPage, refusedPage } from './missing.js';
import type { LauncherStatus, StatusMessage } from './model.js';
import { githubPage } from './page-github.js';
import { imagePage, imagesPage } from './page-images.js';
import { labelPage, labelsPage } from './page-labels.js';
import { nodePage } from './page-node.js';
import { nodesPage } from './page-nodes.js';
import { overviewPage } from './page-overview.js';
import { programsPage } from './page-programs.js';
import { withPresentStep } from './present-step.js';
import { providerPage } from './page-provider.js';
import { providersPage } from './page-providers.js';
import { requestPage } from './page-request.js';
import { requestsPage } from './page-requests.js';
import type { Drawing, View } from './page.js';
import { parseRoute, viewOf, type Route } from './route.js';
import { Shell } from './shell.js';
import { growAges, type Present } from './widgets.js';

/** The views of a page. Documents come from the launcher that serves the page, so their types match. */
interface Page {
  readonly list: View<never>;
  readonly single?: View<never>;
}

const PAGES: Readonly<Record<string, Page>> = {
  '': { list: overviewPage },
  requests: { list: requestsPage, single: requestPage },
  nodes: { list: nodesPage, single: nodePage },
  labels: { list: labelsPage, single: labelPage },
  providers: { list: providersPage, single: providerPage },
  images: { list: imagesPage, single: imagePage },
  github: { list: githubPage },
  programs: { list: programsPage },
};

const OVERVIEW: Route = { page: '', id: undefined, query: new URLSearchParams() };

class App {
  private route: Route = OVERVIEW;
  private connection: Connection | undefined;
  private members: Readonly<Record<string, unknown>> = {};
  /** The launcher's clock minus the browser's, in seconds. */
  private ahead = 0;
  private version: string | undefined;
  /** True from a change of the page until it is drawn, which also moves the focus. */
  private arriving = false;
  private readonly main = document.getElementById('main') ?? document.body;
  private readonly present: Present = { now: () => Date.now() / 1000 + this.ahead };
  private readonly shell = new Shell();

  start(): void {
    window.addEventListener('hashchange', () => this.follow());
    watchFilters(
      () => this.route,
      (href, replace) => {
        if (replace) window.history.replaceState(null, '', href);
        else window.history.pushState(null, '', href);
        this.follow();
      },
    );
    watchCharts();
    // The fragment of the link would replace that of the route.
    document.querySelector('.skip')?.addEventListener('click', (event) => {
      event.preventDefault();
      this.main.focus();
    });
    this.shell.watchSearch();
    every(1000, () => growAges(this.present));
    this.navigate(parseRoute(window.location.hash) ?? OVERVIEW, false);
  }

  private follow(): void {
    const route = parseRoute(window.location.hash);
    if (route === undefined) return;
    this.navigate(route, route.page !== this.route.page || route.id !== this.route.id);
  }

  private navigate(route: Route, arriving: boolean): void {
    const known = PAGES[route.page] === undefined ? OVERVIEW : route;
    const before = this.connection === undefined ? undefined : viewOf(this.route);
    this.route = known;
    this.arriving ||= arriving;
    this.shell.locate(known);
    if (viewOf(known) === before) {
      this.draw();
      return;
    }
    this.connection?.close();
    this.members = {};
    this.main.setAttribute('aria-busy', 'true');
    this.connection = new Connection(viewOf(known), {
      message: (message) => this.message(message),
      liveness: (state: Liveness) => this.shell.liveness(state),
      refused: (reason) => this.refused(reason),
    });
  }

  private message({ time, sections }: StatusMessage): void {
    this.ahead = time - Date.now() / 1000;
    this.shell.updated(time);
    this.members = { ...this.members, ...sections };
    const launcher = this.launcher();
    if (launcher === undefined) return;
    if (this.version !== undefined && this.version !== launcher.version) {
      // The launcher was upgraded; the page has to be loaded from the new version.
      window.location.reload();
      return;
    }
    this.version = launcher.version;
    if (Object.keys(sections).length > 0) this.draw();
  }

  private launcher(): LauncherStatus | undefined {
    return this.members.launcher as LauncherStatus | undefined;
  }

  private draw(): void {
    const launcher = this.launcher();
    if (launcher === undefined) return;
    const { route, present } = this;
    const page = PAGES[route.page];
    const view = route.id === undefined ? page?.list : (page?.single ?? page?.list);
    if (view === undefined) return;
    this.shell.draw(launcher);
    // The members match the view's document, because both come from the same version of the launcher.
    const drawing: Drawing<never> = { document: withPresentStep(this.members) as never, launcher, route, present };
    document.title = `${view.title(route)} – ${launcher.hostname} – Nodepool`;
    this.show(this.members.missing === true ? missingPage(route) : view.draw(drawing));
  }

  private refused(reason: string): void {
    this.show(refusedPage(this.route, reason));
  }

  private show(content: readonly Child[]): void {
    const { route, main } = this;
    show(main, content);
    syncFilters(route);
    main.setAttribute('aria-busy', 'false');
    document.body.dataset.drawn = viewOf(route);
    document.body.dataset.route = window.location.hash;
    if (this.arriving) this.arrive();
  }

  /** Moves the focus to the heading of a new page, or to the subject that the route names within it. */
  private arrive(): void {
    this.arriving = false;
    const current = this.main.querySelector('.current');
    window.scrollTo(0, 0);
    this.main.querySelector<HTMLElement>('h1')?.focus({ preventScroll: true });
    current?.scrollIntoView({ block: 'center' });
  }
}

new App().start();
