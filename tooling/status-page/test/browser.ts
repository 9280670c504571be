/** A page of a browser that records requests, console messages and violations of the security policy. */

import { afterAll, afterEach, beforeAll, beforeEach } from '@jest/globals';
import type { Browser, BrowserContext, BrowserContextOptions, Page } from 'playwright-core';
import { launchChromium, PageServer } from '../src/index.js';

/** Time limit for the browser, which starts slowly on a busy machine (ms). */
export const WAIT_LIMIT_MS = 240_000;

export class Viewer {
  /** URLs that the browser requested. */
  readonly requested: string[] = [];
  /** Warnings and errors of the browser's console, which include violations of the security policy. */
  readonly consoleMessages: string[] = [];

  private constructor(
    readonly context: BrowserContext,
    readonly page: Page,
    readonly server: PageServer,
  ) {
    page.on('request', (request) => this.requested.push(request.url()));
    page.on('console', (message) => {
      if (message.type() === 'error' || message.type() === 'warning') this.consoleMessages.push(message.text());
    });
    page.on('pageerror', (error) => this.consoleMessages.push(error.message));
  }

  static async create(browser: Browser, server: PageServer, options: BrowserContextOptions = {}): Promise<Viewer> {
    const context = await browser.newContext({ timezoneId: 'UTC', ...options });
    context.setDefaultTimeout(WAIT_LIMIT_MS / 2);
    return new Viewer(context, await context.newPage(), server);
  }

  /** Loads the page at a route, e.g. `#/nodes`, and waits until its view is drawn. */
  async open(route = '#/'): Promise<void> {
    await this.page.goto(`${this.server.url}${route}`);
    await this.page.locator('body[data-drawn]').waitFor();
  }

  /** Waits until the view of the launcher's document is drawn, e.g. `nodes?state=ready`. */
  async drawn(view: string): Promise<void> {
    await this.page.locator(`body[data-drawn=${JSON.stringify(view)}]`).waitFor();
  }

  /** Changes the route without loading the page again, and waits until it is drawn. */
  async visit(route: string): Promise<void> {
    await this.page.evaluate((hash) => (window.location.hash = hash), route);
    await this.page.locator(`body[data-route=${JSON.stringify(route)}] main[aria-busy=false]`).waitFor();
  }

  text(selector: string): Promise<string> {
    return this.page.locator(selector).first().innerText();
  }

  /** Waits until an element with the text is there. */
  async sees(selector: string, text: string | RegExp): Promise<void> {
    await this.page.locator(selector).filter({ hasText: text }).first().waitFor();
  }
}

export interface Setting {
  readonly browser: Browser;
  readonly server: PageServer;
  viewer: Viewer;
  /** Replaces the viewer by one with other options. */
  view(options: BrowserContextOptions): Promise<Viewer>;
}

/** Gives each test of the file a server and a viewer, in one browser. */
export function useBrowser(): () => Setting {
  let browser: Browser;
  let setting: Setting;
  beforeAll(async () => {
    browser = await launchChromium();
  }, WAIT_LIMIT_MS);
  afterAll(() => browser.close(), WAIT_LIMIT_MS);
  beforeEach(async () => {
    const server = new PageServer();
    await server.start();
    const view = async (options: BrowserContextOptions): Promise<Viewer> => {
      await setting.viewer.context.close();
      setting.viewer = await Viewer.create(browser, server, options);
      return setting.viewer;
    };
    setting = { browser, server, viewer: await Viewer.create(browser, server), view };
  }, WAIT_LIMIT_MS);
  afterEach(async () => {
    await setting.viewer.context.close();
    await setting.server.close();
  }, WAIT_LIMIT_MS);
  return () => setting;
}
