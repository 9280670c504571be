/** The status page in Chromium with the documents of a real web endpoint. */

import { describe, expect, it } from '@jest/globals';
import type { Page } from 'playwright-core';
import { broken, busy, crowded, empty, hostile } from '../src/index.js';
import { WAIT_LIMIT_MS, useBrowser } from './browser.js';

const setting = useBrowser();

const REQUEST = { state: 'requested', node_types: ['small'], nodes: [], declined_by: [], requestor: 'zuul' };

/** Returns the time at the right end of a chart in unix seconds, from two labels of its axis. */
async function endOf(page: Page, chart: string): Promise<number> {
  const labels = page.locator(`[data-chart=${chart}] [data-key^="at "]`);
  const ticks = await labels.evaluateAll((groups) =>
    groups.map((group) => [
      Number(group.getAttribute('data-key')?.slice('at '.length)),
      parseFloat(group.querySelector('text')?.getAttribute('x') ?? ''),
    ]),
  );
  const [[from = 0, left = 0] = [], [to = 0, right = 0] = []] = [ticks[0], ticks.at(-1)];
  return to + ((100 - right) * (to - from)) / (right - left);
}

describe('the overview', () => {
  it(
    'shows problems with cause, effect and remedy, and consistent numbers',
    async () => {
      const { server, viewer } = setting();
      await busy(server);
      const place = { provider: 'vexxhost', pool: 'main', label: 'debian-12-small' };
      server.recorder.timelines.attempted('0000000001', place, { number: 1, offer: 'small', error: undefined });
      await viewer.open();
      expect(await viewer.page.title()).toBe('Overview – nl01.example.org – Nodepool');
      expect(await viewer.text('#state')).toBe('live');
      const problem = await viewer.text('.problem:has-text("No pool has the label windows-2025")');
      expect(problem).toMatch(/cause: configuration[\s\S]*for 18 min[\s\S]*1 request waits for it[\s\S]*Add the label/);
      expect(await viewer.text('.problem:has-text("gce-europe/arm is at its limit")')).toContain('24 of 24 instances');
      expect(await viewer.text('.tiles')).toMatch(/Waiting requests\s+3[\s\S]*Nodes in use\s+144\s+of 179 nodes/);
      expect(await viewer.text('#navigation')).toMatch(/Requests\s*3[\s\S]*Nodes\s*179/);
      expect(await viewer.text('[data-chart=nodes] .readout')).toMatch(/12 building[\s\S]*16 ready[\s\S]*144 in use/);
      expect(await viewer.text('[data-chart=waiting] .readout')).toBe('3 waiting');
      expect(await viewer.page.locator('[data-chart=nodes] polygon').count()).toBe(6);
      const now = server.clock.now() / 1000;
      // The column of the present step is a minute wide at least; positions are rounded to seconds.
      expect(await endOf(viewer.page, 'launches')).toBeLessThan(now + 75);
      expect(await endOf(viewer.page, 'nodes')).toBeLessThan(now + 15);
      expect(await viewer.text('tr:has-text("gce-europe"):has([role=meter])')).toContain('24 of 24');
      expect(await viewer.text('.failures li:has-text("Launch attempt failed")')).toContain('3 times');
      expect(viewer.consoleMessages).toEqual([]);
    },
    WAIT_LIMIT_MS,
  );

  it(
    'shows the next steps to the operator of a new launcher',
    async () => {
      const { server, viewer } = setting();
      await empty(server);
      await viewer.open();
      expect(await viewer.text('.all-well')).toBe('No problems. No request waits.');
      expect(await viewer.text('main')).toContain('Add one to providers in nodepool.yaml');
      await viewer.page.locator('#navigation a', { hasText: 'Nodes' }).click();
      await viewer.drawn('nodes');
      expect(await viewer.text('main')).toContain('in advance for labels with min-ready');
    },
    WAIT_LIMIT_MS,
  );

  it(
    'shows problems of the configuration, the drivers and the records',
    async () => {
      const { server, viewer } = setting();
      await broken(server);
      await viewer.open();
      // Some problems are in a list that opens on demand.
      const problems = await viewer.page.locator('main').textContent();
      expect(problems).toContain('The changed configuration was refused for 2 problems');
      expect(problems).toContain('/etc/nodepool/nodepool.yaml:31:7: providers[0].pools[0].max-servers');
      expect(problems).toContain('npm install @nodepool/driver-aws');
      expect(problems).toContain('/nodepool/nodes/0000009999');
      expect(problems).toContain('Provider rackspace has 1 node, but no launcher serves it');
    },
    WAIT_LIMIT_MS,
  );
});

describe('the links', () => {
  it(
    'lead from every name to its page, and never to a text table',
    async () => {
      const { server, viewer } = setting();
      await busy(server);
      await viewer.open();
      const seen = new Set<string>();
      const queue = ['#/', '#/requests', '#/nodes', '#/labels', '#/providers', '#/images', '#/programs'];
      while (queue.length > 0) {
        const route = queue.shift() ?? '';
        if (seen.has(route)) continue;
        seen.add(route);
        await viewer.visit(route);
        const found = await viewer.page.evaluate(linksOf);
        expect(found.foreign).toEqual([]);
        expect([route, found.text]).toEqual([route, expect.not.stringMatching(/There is no |Address not understood/)]);
        // A few nodes suffice, and the filters of lists have separate tests.
        const isRepeated = (each: string): boolean => /^#\/(nodes\/|(nodes|requests|labels)\?)/.test(each);
        queue.push(...found.routes.filter((each) => !isRepeated(each)));
        queue.push(...found.routes.filter(isRepeated).slice(0, 2));
      }
      expect([...seen]).toEqual(
        expect.arrayContaining(['#/providers/gce-europe?pool=arm', '#/images/debian-12', '#/labels/windows-2025']),
      );
      expect(viewer.consoleMessages).toEqual([]);
    },
    WAIT_LIMIT_MS,
  );

  it(
    'report a nonexistent target, and the reason of a refused address',
    async () => {
      const { viewer } = setting();
      await viewer.open('#/nodes/0000099999');
      expect(await viewer.text('main')).toContain('There is no node 0000099999.');
      await viewer.open('#/nodes?sort=colour');
      await viewer.sees('main', 'Address not understood');
      expect(await viewer.text('main')).toContain('sort: not one of id,');
    },
    WAIT_LIMIT_MS,
  );
});

describe('the live page', () => {
  it(
    'updates changed parts, and keeps the focus',
    async () => {
      const { server, viewer } = setting();
      await empty(server);
      await viewer.open('#/requests');
      expect(await viewer.text('.nothing')).toContain('nodepool request LABEL');
      await server.put('requests/100-', { ...REQUEST, state_time: server.now }, true);
      await server.clock.advance(1000);
      await viewer.sees('td', 'small');
      expect(await viewer.text('.lead')).toBe('1 request waits, for 1 s.');
      const link = viewer.page.locator('th[data-column=Request] a').first();
      await link.focus();
      await server.put('requests/100-', { ...REQUEST, node_types: ['large'], state_time: server.now }, true);
      await server.clock.advance(1000);
      await viewer.sees('td', 'large');
      expect(await link.evaluate((element) => element === document.activeElement)).toBe(true);
      expect(viewer.requested.filter((url) => url.split('#')[0] === server.url)).toHaveLength(1);
      expect(viewer.requested.filter((url) => !url.startsWith(server.url))).toEqual([]);
    },
    WAIT_LIMIT_MS,
  );

  it(
    'shows the loss and the return of ZooKeeper',
    async () => {
      const { server, viewer } = setting();
      await busy(server);
      await viewer.open();
      server.loseZooKeeper();
      await server.clock.advance(1000);
      await viewer.sees('.problem', 'ZooKeeper is not connected');
      expect(await viewer.text('.tiles')).toMatch(/of 179 nodes/);
      expect(await viewer.page.locator('#announcement').textContent()).toBe('5 problems');
      await server.findZooKeeper();
      await server.clock.advance(1000);
      await viewer.page.locator('.problem', { hasText: 'ZooKeeper' }).waitFor({ state: 'detached' });
      expect(await viewer.page.locator('#announcement').textContent()).toBe('4 problems');
    },
    WAIT_LIMIT_MS,
  );

  it(
    'shows that the launcher does not answer, and reloads itself after an upgrade',
    async () => {
      const { server, viewer } = setting();
      await empty(server);
      await viewer.open('#/nodes');
      await server.stop();
      await viewer.sees('#state', 'the launcher does not answer');
      await server.startAgain();
      await viewer.page.locator('body[data-state=stream]').waitFor();
      expect(await viewer.text('#state')).toBe('live');
      await server.stop();
      server.version = '1.5.0';
      await server.startAgain();
      await viewer.sees('#host', '1.5.0');
      expect(viewer.requested.filter((url) => url.split('#')[0] === server.url)).toHaveLength(2);
      expect(await viewer.text('h1')).toBe('Nodes');
    },
    WAIT_LIMIT_MS,
  );

  it(
    'polls if the stream does not work',
    async () => {
      const { server, viewer } = setting();
      await viewer.page.route('**/status/events?*', (route) => route.fulfill({ status: 502 }));
      await empty(server);
      await viewer.open('#/requests');
      await viewer.sees('#state', 'live, every few seconds');
      await server.put('requests/100-', { ...REQUEST, state_time: server.now }, true);
      await server.clock.advance(1000);
      await viewer.sees('td', 'small');
    },
    WAIT_LIMIT_MS,
  );
});

describe('the list of nodes', () => {
  it(
    'shows the pool after its provider, also if that is written from right to left',
    async () => {
      const { server, viewer } = setting();
      await server.put('nodes/', { state: 'ready', provider: 'ספק-ענן', pool: 'main', type: ['small'] }, true);
      await viewer.open('#/nodes');
      const names = viewer.page.locator('td[data-column="Pool"] bdi');
      expect(await names.allInnerTexts()).toEqual(['ספק-ענן', 'main']);
      const [provider, pool] = [await names.first().boundingBox(), await names.last().boundingBox()];
      expect(provider!.x).toBeLessThan(pool!.x);
    },
    WAIT_LIMIT_MS,
  );

  it(
    'filters, sorts, searches and pages 10,000 nodes in a small document, with a URL for each view',
    async () => {
      const { server, viewer } = setting();
      await crowded(server);
      const { page } = viewer;
      await viewer.open('#/nodes');
      expect(await viewer.text('.tabs')).toMatch(/All 10,000[\s\S]*in use 10,000/);
      expect(await viewer.text('.pager')).toMatch(/10,000 nodes[\s\S]*Page 1 of 100/);
      expect(await page.evaluate(() => document.querySelectorAll('*').length)).toBeLessThan(3000);
      await page.locator('.pager a', { hasText: 'Last' }).click();
      await viewer.drawn('nodes?offset=9900');
      expect(await page.locator('tbody th').last().innerText()).toBe('0000009999');
      const search = page.locator('.filters input');
      await search.pressSequentially('0000004242');
      await viewer.drawn('nodes?q=0000004242');
      expect(await page.locator('tbody tr').count()).toBe(1);
      expect(await search.evaluate((element) => element === document.activeElement)).toBe(true);
      await page.locator('.filters a', { hasText: 'Clear' }).click();
      await viewer.drawn('nodes');
      await page.locator('thead a', { hasText: 'Node' }).click();
      await viewer.drawn('nodes?sort=-id');
      expect(await page.locator('tbody th').first().innerText()).toBe('0000009999');
      expect(await page.locator('th[aria-sort=descending]').innerText()).toContain('Node');
      await page.locator('.filters select[name=provider]').selectOption('vexxhost');
      await viewer.drawn('nodes?sort=-id&provider=vexxhost');
      await page.reload();
      await viewer.drawn('nodes?sort=-id&provider=vexxhost');
      expect(await page.locator('select[name=provider]').inputValue()).toBe('vexxhost');
      await page.goBack();
      await viewer.drawn('nodes?sort=-id');
      expect(await page.locator('select[name=provider]').inputValue()).toBe('');
      expect(viewer.consoleMessages).toEqual([]);
    },
    WAIT_LIMIT_MS,
  );

  it(
    'selects the nodes of a group of states',
    async () => {
      const { server, viewer } = setting();
      await busy(server);
      await viewer.open('#/nodes');
      await viewer.page.locator('.tabs a', { hasText: 'building' }).click();
      await viewer.sees('.pager', '12 nodes');
      expect(await viewer.page.locator('td .badge').allInnerTexts()).toEqual(Array(12).fill('building'));
    },
    WAIT_LIMIT_MS,
  );
});

describe('the page of a request', () => {
  it(
    'draws its phases to scale, and lists them with their sum',
    async () => {
      const { server, viewer } = setting();
      await busy(server);
      const record = { ...REQUEST, node_types: ['fedora-43-arm64'], state_time: server.now, created_time: server.now };
      const path = await server.put('requests/300-', record, true);
      const id = path.slice(path.lastIndexOf('/') + 1);
      const { timelines } = server.recorder;
      const full = 'pool arm of provider gce-europe uses 24 of 24 instances';
      timelines.waits(id, 'gce-europe/arm', { kind: 'capacity', reason: 'the cloud is out of capacity' });
      await server.clock.advance(60_000);
      timelines.waits(id, 'gce-europe/arm', { kind: 'limit', reason: full });
      await server.clock.advance(180_000);
      await viewer.open(`#/requests/${id}`);
      expect(await viewer.text('.callout')).toContain(full);
      const [first = 0, second = 0] = await viewer.page
        .locator('.timeline-bars svg')
        .evaluateAll((bars) => bars.map((bar) => bar.getBoundingClientRect().width));
      expect(second / first).toBeCloseTo(3, 1);
      const phases = await viewer.text('.table:has(caption:text("Phases"))');
      expect(phases).toMatch(/waits for capacity[\s\S]*1 min[\s\S]*25 %[\s\S]*waits for a limit[\s\S]*so far 3 min/);
      expect(phases).toMatch(/Sum[\s\S]*4 min[\s\S]*100 %/);
    },
    WAIT_LIMIT_MS,
  );
});

describe('data of records', () => {
  it(
    'is shown as text, never as HTML',
    async () => {
      const { server, viewer } = setting();
      await hostile(server);
      for (const route of ['#/', '#/requests', '#/nodes', '#/labels', '#/providers', '#/programs']) {
        await viewer.open(route);
        await viewer.sees('main', '<img src=x');
        expect(await viewer.page.locator('main img, main script').count()).toBe(0);
      }
      expect(await viewer.page.title()).toContain('nl01.example.org');
      expect(viewer.consoleMessages).toEqual([]);
    },
    WAIT_LIMIT_MS,
  );
});

/** Runs in the page: returns the links and the text of the view. */
function linksOf(): { routes: string[]; foreign: string[]; text: string } {
  const hrefs = [...document.querySelectorAll('main a[href]')].map((link) => link.getAttribute('href') ?? '');
  return {
    routes: hrefs.filter((href) => href.startsWith('#/')),
    foreign: hrefs.filter((href) => !href.startsWith('#/')),
    text: document.querySelector('main')?.textContent ?? '',
  };
}
