/**
 * Every page is readable and usable with a keyboard, a screen reader, on a phone, in dark mode, and without scripts.
 */

import { describe, expect, it } from '@jest/globals';
import { badTimes, busy, hostile, NOW, serveFixtures } from '../src/index.js';
import { WAIT_LIMIT_MS, useBrowser, type Viewer } from './browser.js';

const setting = useBrowser();

const ROUTES = [
  ...['#/', '#/requests', '#/requests/200-0000090994', '#/requests/200-0000091002', '#/nodes', '#/nodes/0000048200'],
  ...['#/labels?sort=-waiting', '#/labels/debian-12-small', '#/providers', '#/providers/azure-west?pool=main'],
  ...['#/images', '#/images/debian-13', '#/github', '#/programs'],
];

async function openBadTimes(viewer: Viewer): Promise<void> {
  await serveFixtures(viewer.context, badTimes, () => NOW);
}

describe('every page', () => {
  it(
    'has texts with enough contrast, in light and in dark colours',
    async () => {
      const { viewer } = setting();
      await openBadTimes(viewer);
      const backgrounds = new Set<string>();
      for (const colorScheme of ['light', 'dark'] as const) {
        await viewer.page.emulateMedia({ colorScheme });
        await viewer.open();
        backgrounds.add(await viewer.page.evaluate(() => getComputedStyle(document.body).backgroundColor));
        for (const route of ROUTES) {
          await viewer.visit(route);
          expect([route, colorScheme, await viewer.page.evaluate(lowContrasts)]).toEqual([route, colorScheme, []]);
        }
      }
      expect(backgrounds.size).toBe(2);
      expect(viewer.consoleMessages).toEqual([]);
    },
    WAIT_LIMIT_MS,
  );

  it(
    'fits on a phone',
    async () => {
      const viewer = await setting().view({ viewport: { width: 360, height: 740 } });
      await openBadTimes(viewer);
      await viewer.open();
      for (const route of ROUTES) {
        await viewer.visit(route);
        expect([route, await viewer.page.evaluate(() => document.documentElement.scrollWidth)]).toEqual([route, 360]);
      }
    },
    WAIT_LIMIT_MS,
  );

  it(
    'fits on a phone with names of any length and direction',
    async () => {
      const { server, view } = setting();
      const viewer = await view({ viewport: { width: 360, height: 740 } });
      await hostile(server);
      await busy(server);
      for (const route of ['#/', '#/requests', '#/nodes', '#/labels', '#/providers', '#/programs']) {
        await viewer.open(route);
        expect([route, await viewer.page.evaluate(() => document.documentElement.scrollWidth)]).toEqual([route, 360]);
      }
    },
    WAIT_LIMIT_MS,
  );

  it(
    'has one heading of the first level, landmarks, and tables with captions and headers',
    async () => {
      const { viewer } = setting();
      await openBadTimes(viewer);
      await viewer.open();
      expect(await viewer.page.locator('header, main, footer, nav[aria-label=Pages], form[role=search]').count()).toBe(
        5,
      );
      for (const route of ROUTES) {
        await viewer.visit(route);
        expect([route, await viewer.page.evaluate(structureFaults)]).toEqual([route, []]);
      }
    },
    WAIT_LIMIT_MS,
  );
});

describe('the keyboard', () => {
  it(
    'skips to the content, follows links, and opens an id from the search',
    async () => {
      const { viewer } = setting();
      await openBadTimes(viewer);
      await viewer.open();
      const { page } = viewer;
      await page.keyboard.press('Tab');
      expect(await page.evaluate(() => document.activeElement?.textContent)).toBe('Skip to the content');
      await page.keyboard.press('Enter');
      expect(await page.evaluate(() => document.activeElement?.id)).toBe('main');
      await page.keyboard.press('Tab');
      expect(await page.evaluate(() => document.activeElement?.textContent)).toBe('Provider aws-east is unreachable');
      await page.keyboard.press('Enter');
      await viewer.drawn('provider/aws-east');
      expect(await page.evaluate(() => document.activeElement?.tagName)).toBe('H1');
      await page.keyboard.press('/');
      await page.keyboard.type('0000048200');
      await page.keyboard.press('Enter');
      await viewer.drawn('node/0000048200');
      expect(await page.evaluate(() => document.activeElement?.textContent)).toContain('Node 0000048200');
      await page.goBack();
      await viewer.drawn('provider/aws-east');
    },
    WAIT_LIMIT_MS,
  );
});

describe('a browser without JavaScript', () => {
  it(
    'shows links to the text lists',
    async () => {
      const viewer = await setting().view({ javaScriptEnabled: false });
      await viewer.page.goto(viewer.server.url);
      expect(await viewer.text('noscript')).toContain('This page needs JavaScript.');
      for (const href of ['request-list', 'node-list', 'label-list', 'image-list', 'dib-image-list', 'health']) {
        const link = viewer.page.locator(`main a[href="${href}"]`);
        expect(await link.isVisible()).toBe(true);
        expect((await fetch(new URL(href, viewer.server.url))).status).toBe(200);
      }
    },
    WAIT_LIMIT_MS,
  );
});

/** Runs in the page: texts whose contrast is below 4.5 to 1 (WCAG 2.2, 1.4.3). */
function lowContrasts(): string[] {
  const parse = (color: string): number[] => (color.match(/[\d.]+/g) ?? []).map(Number);
  const luminance = (color: string): number => {
    const [red = 0, green = 0, blue = 0] = parse(color).map((part) => {
      const share = part / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const background = (element: Element | null): string => {
    // A text of a timeline is drawn over the bar beside it.
    const drawn = element?.parentElement?.querySelector(':scope > rect');
    if (element instanceof SVGTextElement && drawn) return getComputedStyle(drawn).fill;
    for (let each = element; each !== null; each = each.parentElement) {
      const color = getComputedStyle(each).backgroundColor;
      if (parse(color)[3] !== 0) return color;
    }
    return 'rgb(255, 255, 255)';
  };
  return [...document.querySelectorAll('body *')].flatMap((element) => {
    const hasText = [...element.childNodes].some((child) => child.nodeType === 3 && child.nodeValue?.trim() !== '');
    if (!hasText || element.closest('noscript, script, option, title') !== null) return [];
    const style = getComputedStyle(element);
    const color = element instanceof SVGElement ? style.fill : style.color;
    const [low = 0, high = 0] = [luminance(color), luminance(background(element))].sort((a, b) => a - b);
    const ratio = (high + 0.05) / (low + 0.05);
    if (ratio >= 4.5) return [];
    return [`${element.tagName} ${element.getAttribute('class') ?? ''} ${element.textContent}: ${ratio.toFixed(2)}`];
  });
}

/** Runs in the page: returns structural errors that affect screen readers. */
function structureFaults(): string[] {
  const faults: string[] = [];
  if (document.querySelectorAll('h1').length !== 1) faults.push('not one h1');
  for (const table of document.querySelectorAll('table')) {
    const caption = table.querySelector('caption')?.textContent ?? '';
    if (caption === '') faults.push('a table without caption');
    if (table.querySelector('thead th:not([scope=col])') !== null) faults.push(`${caption}: a header without scope`);
    if (table.querySelector('tbody tr > :first-child:not(th[scope=row])') !== null) {
      faults.push(`${caption}: a row without header`);
    }
  }
  const ids = [...document.querySelectorAll('[id]')].map(({ id }) => id);
  if (new Set(ids).size !== ids.length) faults.push(`ids are not unique: ${ids.join(' ')}`);
  for (const field of document.querySelectorAll('input, select')) {
    if (field.closest('label') === null && field.getAttribute('aria-label') === null)
      faults.push('a field without label');
  }
  for (const graphic of document.querySelectorAll('svg:not(svg svg)')) {
    const isNamed = graphic.getAttribute('role') === 'img' && graphic.getAttribute('aria-label') !== null;
    if (!isNamed && graphic.getAttribute('aria-hidden') !== 'true') faults.push('a graphic without description');
  }
  for (const link of document.querySelectorAll('a[href]')) {
    if (link.textContent.trim() === '') faults.push(`an empty link to ${link.getAttribute('href') ?? ''}`);
  }
  if (document.querySelector('[style], [tabindex]:not([tabindex="-1"])') !== null)
    faults.push('a style or a tab order');
  const live = document.querySelectorAll('main [aria-live], main [role=status]').length;
  if (live > 0) faults.push('a live region within the content');
  return faults;
}
