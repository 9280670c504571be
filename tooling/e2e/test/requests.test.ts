/** One launcher, asked for nodes by a program that speaks to ZooKeeper as Zuul does. */

import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { Program } from '@nodepool/harness';
import { Site } from './site.js';

describe('a launcher', () => {
  let site: Site;
  let launcher: Program;

  beforeAll(async () => {
    // So short that the nodes of a requestor that died are soon free.
    site = await Site.start({ maxSessionTimeout: 10_000 });
    launcher = await site.launcher({ providers: [{ cloud: { 'boot-time': 0.1, ssh: true }, hostKeyChecking: true }] });
  });

  afterAll(async () => {
    await site.stop();
  });

  it('fulfils a request for one node, and deletes the node once it was used', async () => {
    const { exitCode, summary, reports } = await site.ask('--labels', 'debian', '--wait-deleted');

    expect(summary).toMatchObject({ outcomes: { fulfilled: 1 }, problems: [], nodes: 1 });
    expect(reports[0]?.addresses[0]).toEqual(expect.stringMatching(/\d+\.\d+\.\d+\.\d+/));
    expect(exitCode).toBe(0);
  });

  it('fulfils a request for three nodes with the labels in their order', async () => {
    const { exitCode, summary } = await site.ask('--labels', 'debian,fedora,debian', '--wait-deleted');

    expect(summary).toMatchObject({ outcomes: { fulfilled: 1 }, problems: [], nodes: 3 });
    expect(exitCode).toBe(0);
  });

  it('fulfils fifty requests, twenty at a time, and hands no node out twice', async () => {
    const { exitCode, summary, reports } = await site.ask(
      ...['--labels', 'debian', '--parallel', '20', '--requests', '50', '--wait-deleted'],
    );

    expect(summary).toMatchObject({ outcomes: { fulfilled: 50 }, problems: [], nodes: 50 });
    expect(new Set(reports.flatMap((report) => report.nodes)).size).toBe(50);
    expect(exitCode).toBe(0);
  });

  it('launches new nodes for a requestor that wants none that are ready', async () => {
    const { exitCode, summary } = await site.ask('--labels', 'fedora', '--no-reuse', '--wait-deleted');

    expect(summary).toMatchObject({ outcomes: { fulfilled: 1 }, problems: [] });
    expect(exitCode).toBe(0);
  });

  it('fails a request for a label that nobody offers', async () => {
    const { exitCode, summary } = await site.ask('--labels', 'plan9');

    expect(summary).toMatchObject({ outcomes: { failed: 1 } });
    expect(exitCode).toBe(1);
  });

  it('deletes the nodes of a requestor that died with them in use', async () => {
    const dying = await site.requestor('--labels', 'debian,debian', '--die');
    await dying.result;

    expect(dying.program.exit?.signal).toBe('SIGKILL');
    await site.clean(launcher);
  });

  it('ends in peace when it is asked to', async () => {
    expect(await launcher.stop()).toEqual({ code: 0, signal: null });
  });
});
