/** Runs the commands of the table of exit codes in `docs/switching.md`. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { World } from './world.js';

const PAGE = readFileSync(join(__dirname, '..', '..', '..', 'docs', 'switching.md'), 'utf8');

const CONFIG = `
zookeeper-servers: [{host: localhost, port: 2181}]
labels: []
diskimages: [{name: debian-12}]
images-dir: /images
providers: []
`;

/** Returns the commands in the first column of the table with this header. */
function commandsOfTable(...header: string[]): string[] {
  const lines = PAGE.split('\n');
  const start = lines.findIndex((line) => cells(line).join() === header.join());
  const rows = lines.slice(start + 2, lines.indexOf('', start));
  return rows.flatMap((row) =>
    [...(cells(row)[0] ?? '').matchAll(/`nodepool ([^`]+)`/g)].map(([, command = '']) => command),
  );
}

function cells(line: string): string[] {
  return line
    .split('|')
    .slice(1, -1)
    .map((cell) => cell.trim());
}

let world: World;

beforeEach(async () => {
  world = new World();
  await world.start();
  await world.writeConfig(CONFIG);
});

afterEach(() => world.stop());

it.each(commandsOfTable('command', 'why it is refused'))('nodepool %s exits with 1 and the reason', async (command) => {
  await world.build('debian-12', 'building', { state: 'building' });
  await world.upload(await world.build('debian-12', 'uploading'), 'cloud', { state: 'uploading' });
  const { code, out } = await world.run(...command.split(' '));
  expect([code, out.printed]).toEqual([1, '']);
  expect(out.noted).toMatch(/^nodepool: (there is no|the configuration has no|.* is in progress)/);
});

it('the table has commands', () => {
  expect(commandsOfTable('command', 'why it is refused').length).toBeGreaterThan(8);
});
