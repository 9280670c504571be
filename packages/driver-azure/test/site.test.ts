/** The first configuration: looking into a subscription changes nothing there. */

import { afterEach, beforeEach, expect, it } from '@jest/globals';
import type { JsonObject, SiteDescription } from '@nodepool/core';
import { callOn } from '@nodepool/driver-kit';
import { openCloud, type OpenCloud } from './cloud.js';
import { TestProvider } from './provider.js';
import { siteGuide } from '../src/site.js';

const SETTINGS = { location: 'centralus', 'resource-group': 'planned', 'zuul-public-key': 'ssh-ed25519 AAAA zuul' };

let open: OpenCloud;
let test: TestProvider;

beforeEach(async () => {
  open = await openCloud();
});

afterEach(async () => {
  await test.stop();
  await open.cloud.close();
});

it('does not create a resource group that is missing, and lists no networks of it', async () => {
  const section: JsonObject = { name: 'test', driver: 'azure', rate: 0, ...siteGuide.section(SETTINGS) };
  test = new TestProvider(open, section);
  await test.start();
  let site: SiteDescription | undefined;
  void test.provider.describeSite?.(callOn(open.time.clock)).then((described) => {
    site = described;
  });
  await open.time.until(() => site !== undefined, 60_000);
  expect(site?.network?.options).toEqual([]);
  expect(site?.image?.options.map(({ name }) => name)).toEqual(['Debian:debian-12:12-gen2:latest']);
  expect(open.cloud.calls.count('resourceGroups.put')).toBe(0);
});
