/**
 * The parts of the documentation that are generated from the code. On a page, such a part is between the comments `<!--
 * generated: NAME -->` and `<!-- /generated -->`; the rest of the page is written by hand.
 */

import * as bridgeGithub from '@nodepool/bridge-github';
import * as builder from '@nodepool/builder';
import { configSchema } from '@nodepool/config';
import * as core from '@nodepool/core';
import * as daemon from '@nodepool/daemon';
import * as gateway from '@nodepool/gateway';

import * as launcher from '@nodepool/launcher';
import * as status from '@nodepool/status';
import { driverPackages } from './drivers.js';
import { commonOptions, driverOptions } from './reference/driver-options.js';
import { listsReference } from './reference/lists.js';
import { metricsReference } from './reference/metrics.js';
import { schemaOutline } from './reference/outline.js';
import { programsReference } from './reference/programs.js';
import { secureKeys } from './reference/secure-keys.js';

/** A generated part: its page below `docs`, its name on that page, and the function that generates it. */
export interface GeneratedPart {
  readonly page: string;
  readonly name: string;
  make(): string | Promise<string>;
}

export const GENERATED: readonly GeneratedPart[] = [
  {
    page: 'reference/configuration.md',
    name: 'nodepool.yaml',
    make: () => schemaOutline(configSchema, ['labels', 'diskimages'], ['providers']),
  },
  { page: 'reference/configuration.md', name: 'secure file', make: secureKeys },
  {
    page: 'reference/configuration.md',
    name: 'github.yaml',
    make: () => schemaOutline(bridgeGithub.settingsSchema),
  },
  { page: 'reference/programs.md', name: 'programs', make: programsReference },
  { page: 'reference/web.md', name: 'lists', make: listsReference },
  { page: 'reference/metrics.md', name: 'launcher', make: () => metricsReference(launcher, status) },
  { page: 'reference/metrics.md', name: 'builder', make: () => metricsReference(builder) },
  { page: 'reference/metrics.md', name: 'gateway', make: () => metricsReference(gateway) },
  { page: 'reference/metrics.md', name: 'github', make: () => metricsReference(bridgeGithub) },
  { page: 'reference/metrics.md', name: 'clouds', make: () => metricsReference({ ...core, ...daemon }) },
  { page: 'drivers/README.md', name: 'options', make: commonOptions },
  ...driverPackages().map((driver) => ({
    page: `drivers/${driver.name}.md`,
    name: 'options',
    make: () => driverOptions(driver),
  })),
];

/** Returns the page with the part inserted. Throws if the page has no place for it. */
export function insertGenerated(page: string, part: Pick<GeneratedPart, 'page' | 'name'>, text: string): string {
  const begin = `<!-- generated: ${part.name} -->`;
  const end = '<!-- /generated -->';
  const from = page.indexOf(begin);
  const to = page.indexOf(end, from);
  if (from === -1 || to === -1) {
    throw new Error(`docs/${part.page} has no place for what is generated: write ${begin} and ${end} into it`);
  }
  return `${page.slice(0, from + begin.length)}\n\n${text}\n\n${page.slice(to)}`;
}
