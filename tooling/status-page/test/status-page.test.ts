import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { broken, busy, crowded, empty, hostile, launchChromium, PageServer } from '../src/index.js';

/** A machine that does much else starts a browser slowly. */
const PATIENCE_MS = 240_000;

let browser: Browser;
let context: BrowserContext;
let page: Page;
let server: PageServer;
/** What the browser asked for, and what it complained of. */
let asked: string[];
let complaints: string[];

beforeAll(async () => {
  browser = await launchChromium();
}, PATIENCE_MS);

afterAll(() => browser.close(), PATIENCE_MS);

beforeEach(async () => {
  server = new PageServer();
  await server.start();
  await newPage();
}, PATIENCE_MS);

afterEach(async () => {
  await context.close();
  await server.close();
}, PATIENCE_MS);

async function newPage(options: Parameters<Browser['newContext']>[0] = {}): Promise<void> {
  asked = [];
  complaints = [];
  context = await browser.newContext(options);
  context.setDefaultTimeout(PATIENCE_MS / 2);
  page = await context.newPage();
  page.on('request', (request) => asked.push(request.url()));
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') complaints.push(message.text());
  });
  page.on('pageerror', (error) => complaints.push(error.message));
}

async function open(): Promise<void> {
  await page.goto(server.url);
  await page.locator('body[data-drawn]').waitFor();
}

const textOf = (selector: string): Promise<string> => page.locator(selector).innerText();
const seeing = (selector: string, text: string): Promise<void> =>
  page.locator(selector).filter({ hasText: text }).first().waitFor();

describe('the status page', () => {
  it(
    'shows what an operator looks at',
    async () => {
      await busy(server);
      await open();
      expect(await page.title()).toBe('nl01.example.org – Nodepool');
      expect(await textOf('#state')).toBe('live');
      expect(await textOf('#tiles')).toMatch(/Nodes\s+179[\s\S]*Waiting\s+3/);
      expect(await textOf('#requests tr:has-text("fedora-43-arm64 ×5")')).toContain('uses 24 of 24 instances, 5 more');
      expect(await textOf('#requests tr:has-text("windows-2025")')).toMatch(/No registered pool .*has windows-2025/);
      const arm = page.locator('#providers article', { hasText: 'gce-europe' });
      expect(await arm.getByRole('meter').getAttribute('aria-valuetext')).toBe('24 of 24');
      expect(await arm.innerText()).toContain('driver gce 1.3.2');
      expect(await textOf('#images tr:has-text("debian-12")')).toContain('uploading 62 %');
      expect(await textOf('#components')).toContain('nb01.example.org');
      expect(await textOf('#failures li:has-text("Launch attempt failed")')).toContain('3 times');
      expect(await page.locator('#nodes svg polygon').count()).toBe(6);
      expect(complaints).toEqual([]);
    },
    PATIENCE_MS,
  );

  it(
    'follows changes without being loaded again, and leaves what is the same as it is',
    async () => {
      await empty(server);
      await open();
      expect(await textOf('#requests')).toBe('No request waits.');
      await server.put('requests/100-', { state: 'requested', state_time: server.now, node_types: ['small'] }, true);
      await server.clock.advance(1000);
      await seeing('#requests', 'small');
      const link = page.locator('#requests a').first();
      await link.focus();
      await server.put('requests/100-', { state: 'requested', state_time: server.now, node_types: ['large'] }, true);
      await server.clock.advance(1000);
      await seeing('#requests', 'large');
      expect(await link.evaluate((element) => element === document.activeElement)).toBe(true);
      expect(asked.filter((url) => url === server.url)).toHaveLength(1);
    },
    PATIENCE_MS,
  );

  it(
    'loads nothing from anywhere else',
    async () => {
      await busy(server);
      await open();
      expect(asked.filter((url) => !url.startsWith(server.url))).toEqual([]);
      expect(asked.length).toBeGreaterThan(3);
    },
    PATIENCE_MS,
  );

  it(
    'shows what others wrote as text, whatever they wrote',
    async () => {
      await hostile(server);
      await open();
      await seeing('#requests', '<script>');
      await seeing('#failures', '<img src=x');
      expect(await page.locator('main img, main script').count()).toBe(0);
      expect(await page.title()).toBe('nl01.example.org – Nodepool');
      expect(complaints).toEqual([]);
    },
    PATIENCE_MS,
  );

  it(
    'says what is wrong with the configuration, drivers and records',
    async () => {
      await broken(server);
      await open();
      const notices = await textOf('#notices');
      expect(notices).toContain('was refused for 2 problems');
      expect(notices).toContain('/etc/nodepool/nodepool.yaml:31:7: providers[0].pools[0].max-servers');
      expect(notices).toContain('npm install @nodepool/driver-aws');
      expect(notices).toContain('/nodepool/nodes/0000009999');
      expect(notices).toContain('Provider rackspace has nodes, but no launcher serves it.');
    },
    PATIENCE_MS,
  );

  it(
    'says when ZooKeeper is lost, and when it is back',
    async () => {
      await busy(server);
      await open();
      expect(await textOf('#notices')).toBe('');
      server.loseZooKeeper();
      await server.clock.advance(1000);
      await seeing('#notices', 'There is no connection to ZooKeeper');
      expect(await textOf('#tiles')).toMatch(/Nodes\s+179/);
      await server.findZooKeeper();
      await server.clock.advance(1000);
      await page.locator('#notices .notice').first().waitFor({ state: 'detached' });
    },
    PATIENCE_MS,
  );

  it(
    'says when the launcher does not answer, and goes on when it is back',
    async () => {
      await empty(server);
      await open();
      await server.stop();
      await seeing('#state', 'the launcher does not answer');
      await server.startAgain();
      await page.locator('body[data-state=stream]').waitFor();
      expect(await textOf('#state')).toBe('live');
    },
    PATIENCE_MS,
  );

  it(
    'loads itself again when the launcher was upgraded',
    async () => {
      await empty(server);
      await open();
      await server.stop();
      server.version = '1.5.0';
      await server.startAgain();
      await seeing('#host', '1.5.0');
      expect(asked.filter((url) => url === server.url)).toHaveLength(2);
    },
    PATIENCE_MS,
  );

  it(
    'asks every few seconds where streams do not get through',
    async () => {
      await page.route('**/status/events', (route) => route.fulfill({ status: 502 }));
      await empty(server);
      await open();
      await seeing('#state', 'live, every few seconds');
      await server.put('requests/100-', { state: 'requested', state_time: server.now, node_types: ['small'] }, true);
      await server.clock.advance(1000);
      await seeing('#requests', 'small');
    },
    PATIENCE_MS,
  );

  it(
    'fits on a phone',
    async () => {
      await context.close();
      await newPage({ viewport: { width: 360, height: 740 } });
      await hostile(server);
      await busy(server);
      await open();
      const width = await page.evaluate(() => document.documentElement.scrollWidth);
      expect(width).toBeLessThanOrEqual(360);
    },
    PATIENCE_MS,
  );

  it(
    'is dark for who wants it dark, with words that can be read either way',
    async () => {
      await broken(server);
      for (const colorScheme of ['light', 'dark'] as const) {
        await page.emulateMedia({ colorScheme });
        await open();
        expect(await page.evaluate(contrasts)).toEqual([]);
      }
      const dark = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
      await page.emulateMedia({ colorScheme: 'light' });
      expect(await page.evaluate(() => getComputedStyle(document.body).backgroundColor)).not.toBe(dark);
    },
    PATIENCE_MS,
  );

  it(
    'shows 10,000 nodes and 5,000 requests in a small page',
    async () => {
      await crowded(server);
      await open();
      expect(await textOf('#tiles')).toMatch(/Nodes\s+10,000[\s\S]*Waiting\s+5,000/);
      expect(await page.locator('#requests tbody tr').count()).toBe(25);
      expect(await textOf('#requests .more')).toBe('and 4,975 more requests');
      expect(await page.evaluate(() => document.querySelectorAll('*').length)).toBeLessThan(1000);
    },
    PATIENCE_MS,
  );
});

/** Runs in the page: texts whose contrast is below 4.5 to 1 (WCAG 2.2, 1.4.3). */
function contrasts(): string[] {
  const parse = (color: string): number[] => (color.match(/[\d.]+/g) ?? []).map(Number);
  const luminance = (color: string): number => {
    const [red = 0, green = 0, blue = 0] = parse(color).map((part) => {
      const share = part / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const background = (element: Element | null): string => {
    for (let each = element; each !== null; each = each.parentElement) {
      const color = getComputedStyle(each).backgroundColor;
      if (parse(color)[3] !== 0) return color;
    }
    return 'rgb(255, 255, 255)';
  };
  return [...document.querySelectorAll('body *')].flatMap((element) => {
    const hasText = [...element.childNodes].some((child) => child.nodeType === 3 && child.nodeValue?.trim() !== '');
    if (!hasText || element.closest('noscript, script') !== null) return [];
    const [low = 0, high = 0] = [luminance(getComputedStyle(element).color), luminance(background(element))].sort(
      (a, b) => a - b,
    );
    const ratio = (high + 0.05) / (low + 0.05);
    return ratio >= 4.5 ? [] : [`${element.tagName} ${element.className}: ${ratio.toFixed(2)}`];
  });
}
