/** Tests of the journal that a launcher exports for plans. */

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { silentLogger, silentMetrics, type JsonObject } from '@nodepool/core';
import { Recorder } from '@nodepool/status';
import { StatusSite } from '../support/status-site.js';
import { World, pool, provider, type RunningLauncher } from '../support/world.js';

let world: World;
beforeEach(() => {
  world = new World();
});
afterEach(async () => {
  expect(await world.end()).toEqual([]);
});

const PROVIDERS = [provider('demo', [pool('main', ['small'], { 'max-servers': 2 })])];

function linesIn(text: string): JsonObject[] {
  return text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as JsonObject);
}

it('the web endpoint has the requests, launches and limits, compressed for clients that accept it', async () => {
  const site = await StatusSite.start(world, PROVIDERS);
  const id = await world.served(['small']);
  const waiting = await world.submit(['small', 'small']);
  await world.clock.advance(1000);
  const plain = await site.fetch('/journal', '*/*', { 'Accept-Encoding': 'identity' });
  expect(plain.headers.get('content-type')).toBe('application/jsonl');
  expect(plain.headers.get('content-encoding')).toBeNull();
  const lines = linesIn(await plain.text());
  expect(lines.map(({ kind }) => kind)).toEqual(['journal', 'provider', 'request', 'request', 'node']);
  expect(lines[2]).toMatchObject({ id, labels: ['small'], result: 'fulfilled', nodes: ['0000000000'] });
  expect(lines[3]).not.toHaveProperty('result');
  expect(lines[3]).toMatchObject({ id: waiting, labels: ['small', 'small'] });
  const launch = { pool: 'demo/main', label: 'small', result: 'ready' };
  expect(lines[4]).toMatchObject({ id: '0000000000', request: id, open: true, attempts: [launch] });

  const compressed = await site.fetch('/journal', '*/*', { 'Accept-Encoding': 'gzip' });
  expect(compressed.headers.get('content-encoding')).toBe('gzip');
  expect(linesIn(await compressed.text()).slice(1)).toEqual(lines.slice(1));
  await site.stop();
});

it('the lives that ended before a restart are part of it', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'nodepool-journal-'));
  const running = await world.launcher(PROVIDERS);
  const recorderOf = async ({ store, launcher }: RunningLauncher): Promise<Recorder> => {
    const activity = (): ReturnType<typeof launcher.activity> => launcher.activity();
    const log = silentLogger;
    const options = { store, clock: world.clock, log, metrics: silentMetrics, activity, stateDir: directory };
    const recorder = new Recorder(options);
    await recorder.start();
    return recorder;
  };
  const first = await recorderOf(running);
  const id = await world.served(['small']);
  await world.clock.advance(60_000);
  await first.stop();
  await world.clock.advance(60_000);
  const next = await recorderOf(running);
  const lines = linesIn(gunzipSync(Buffer.concat(await next.exportJournal())).toString());
  const ended = lines.find(({ kind }) => kind === 'request');
  expect(ended).toMatchObject({ id, result: 'fulfilled' });
  const [header] = lines;
  expect(Number(header?.['until']) - Number(header?.['since'])).toBeGreaterThanOrEqual(120);
  await next.stop();
  await rm(directory, { recursive: true });
});
