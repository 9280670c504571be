/**
 * Writes the screenshots of `docs/status-page.md`. Usage: `screenshots.js [FOLDER]`; default: `docs/images` of this
 * checkout.
 */

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser } from 'playwright-core';
import { launchChromium } from './chromium.js';
import { serveFixtures } from './fixture-views.js';
import { badTimes } from './fixtures/bad-times.js';
import { NOW } from './fixtures/history.js';
import { PageServer } from './page-server.js';

const DESKTOP = { width: 1180, height: 1000 };
const LOW = { width: 1180, height: 640 };
const PHONE = { width: 390, height: 844 };

interface Screenshot {
  readonly name: string;
  readonly route: string;
  readonly size: typeof DESKTOP;
  readonly dark: boolean;
}

const SCREENSHOTS: readonly Screenshot[] = [
  { name: 'overview', route: '#/', size: DESKTOP, dark: false },
  { name: 'request', route: '#/requests/200-0000090994', size: DESKTOP, dark: false },
  { name: 'provider', route: '#/providers/azure-west', size: DESKTOP, dark: false },
  { name: 'github', route: '#/github', size: DESKTOP, dark: false },
  { name: 'nodes-dark', route: '#/nodes', size: LOW, dark: true },
  { name: 'phone', route: '#/', size: PHONE, dark: false },
  { name: 'phone-dark', route: '#/nodes', size: PHONE, dark: true },
];

async function main([folder = join(__dirname, '../../../docs/images')]: readonly string[]): Promise<void> {
  mkdirSync(folder, { recursive: true });
  const browser = await launchChromium();
  const server = new PageServer();
  try {
    await server.start();
    for (const screenshot of SCREENSHOTS) {
      const path = join(folder, `status-page-${screenshot.name}.png`);
      await take(browser, server.url, screenshot, path);
      process.stdout.write(`${path}\n`);
    }
  } finally {
    await browser.close();
    await server.close();
  }
}

async function take(browser: Browser, url: string, { route, size, dark }: Screenshot, path: string): Promise<void> {
  const context = await browser.newContext({ viewport: size, colorScheme: dark ? 'dark' : 'light', timezoneId: 'UTC' });
  try {
    await serveFixtures(context, badTimes, () => NOW);
    const page = await context.newPage();
    await page.goto(`${url}${route}`);
    await page.locator('body[data-drawn]').waitFor();
    await page.screenshot({ path });
  } finally {
    await context.close();
  }
}

main(process.argv.slice(2)).catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
  process.exitCode = 1;
});
