/** Writes the screenshots of `docs/status-page.md`: `screenshots.js [FOLDER]`, default `docs/images` of this checkout. */

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser } from 'playwright-core';
import { launchChromium } from './chromium.js';
import { PageServer } from './page-server.js';
import { broken, busy, empty } from './scenes.js';

const TALL = { width: 1000, height: 1450 };
const DESKTOP = { width: 1000, height: 640 };
const PHONE = { width: 390, height: 844 };

interface Shot {
  readonly name: string;
  readonly scene: (page: PageServer) => Promise<void>;
  readonly size: typeof DESKTOP;
  readonly dark: boolean;
  /** Happens while the page is open. */
  readonly then?: (page: PageServer) => void;
}

const SHOTS: readonly Shot[] = [
  { name: 'desktop-light', scene: busy, size: TALL, dark: false },
  { name: 'desktop-dark', scene: busy, size: DESKTOP, dark: true },
  { name: 'phone-light', scene: busy, size: PHONE, dark: false },
  { name: 'phone-dark', scene: busy, size: PHONE, dark: true },
  { name: 'empty', scene: empty, size: DESKTOP, dark: false },
  { name: 'broken-configuration', scene: broken, size: DESKTOP, dark: false },
  {
    name: 'lost-zookeeper',
    scene: busy,
    size: DESKTOP,
    dark: true,
    then: (page) => page.loseZooKeeper(),
  },
];

async function main([folder = join(__dirname, '../../../docs/images')]: readonly string[]): Promise<void> {
  mkdirSync(folder, { recursive: true });
  const browser = await launchChromium();
  try {
    for (const shot of SHOTS) {
      const path = join(folder, `status-page-${shot.name}.png`);
      await take(browser, shot, path);
      process.stdout.write(`${path}\n`);
    }
  } finally {
    await browser.close();
  }
}

async function take(browser: Browser, { scene, size, dark, then }: Shot, path: string): Promise<void> {
  const server = new PageServer();
  const context = await browser.newContext({ viewport: size, colorScheme: dark ? 'dark' : 'light', timezoneId: 'UTC' });
  try {
    await server.start();
    await scene(server);
    const page = await context.newPage();
    await page.goto(server.url);
    await page.locator('body[data-drawn]').waitFor();
    if (then !== undefined) {
      then(server);
      await server.clock.advance(2000);
      await page.locator('.notice').first().waitFor();
    }
    await page.screenshot({ path });
  } finally {
    await context.close();
    await server.close();
  }
}

main(process.argv.slice(2)).catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
  process.exitCode = 1;
});
