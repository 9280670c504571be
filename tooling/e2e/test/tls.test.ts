/** A ZooKeeper that requires client certificates. */

import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Site } from './site.js';

describe('a ZooKeeper that requires client certificates', () => {
  let site: Site;

  beforeAll(async () => {
    site = await Site.start({ tls: true });
  });

  afterAll(async () => {
    await site.stop();
  });

  it('serves a launcher with the certificate in its configuration', async () => {
    expect(site.address.tls).toBeDefined();
    await site.launcher();

    const { exitCode, summary } = await site.ask('--labels', 'debian,fedora', '--wait-deleted');

    expect(summary).toMatchObject({ outcomes: { fulfilled: 1 }, problems: [], nodes: 2 });
    expect(exitCode).toBe(0);
  });
});
