/** A launcher that reads a changed configuration (SIGHUP) while the instances of a request boot. */

import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { ExampleProvider, Program } from '@nodepool/harness';
import { Site } from './site.js';

describe('a launcher completes requests as they were accepted', () => {
  let site: Site;
  let endpoint: string;
  let launcher: Program;

  beforeEach(async () => {
    site = await Site.start();
    endpoint = await site.cloud(['boot-time=4']);
    launcher = await site.launcher({ providers: [{ endpoint }] });
  });

  afterEach(async () => {
    await site.stop();
  });

  it.each<[string, () => readonly ExampleProvider[]]>([
    ['a label is removed', () => [{ endpoint, labels: ['fedora'] }]],
    ['the provider is removed', () => [{ endpoint, name: 'next', labels: ['fedora'] }]],
  ])('if %s', async (_, providers) => {
    const requestor = await site.requestor('--labels', 'debian,debian', '--parallel', '3', '--requests', '3');
    await site.nodesExist(launcher, 6);
    await site.reconfigure(launcher, { providers: providers() });
    launcher.signal('SIGHUP');
    const { exitCode, summary } = await requestor.result;
    expect(summary).toMatchObject({ outcomes: { fulfilled: 3 }, problems: [], nodes: 6 });
    expect(exitCode).toBe(0);

    // The new configuration decides about new requests.
    const later = await site.ask('--labels', 'debian');
    expect(later.summary).toMatchObject({ outcomes: { failed: 1 } });
    expect(await launcher.stop()).toEqual({ code: 0, signal: null });
  });
});
