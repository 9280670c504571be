/** The exit status of refused commands, which docs/switching.md describes. */

import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { World } from './world.js';

const CONFIG = `
zookeeper-servers: [{host: localhost, port: 2181}]
labels: []
diskimages: [{name: debian-12}]
images-dir: /images
providers: []
`;

/** Commands that the Python Nodepool answers with a text or an empty list, and the exit status 0. */
const REFUSED = [
  'delete 9999',
  'hold 9999',
  'image-delete --provider cloud --image debian-12 --build-id none --upload-id 1',
  'image-delete --provider cloud --image debian-12 --build-id uploading --upload-id 1',
  'dib-image-delete debian-12-none',
  'dib-image-delete debian-12-building',
  'info unknown',
  'erase unknown --force',
  'alien-image-list unknown',
  'image-pause unknown',
  'image-unpause unknown',
];

let world: World;

beforeEach(async () => {
  world = new World();
  await world.start();
  await world.writeConfig(CONFIG);
});

afterEach(() => world.stop());

it.each(REFUSED)('nodepool %s exits with 1 and the reason', async (command) => {
  await world.build('debian-12', 'building', { state: 'building' });
  await world.upload(await world.build('debian-12', 'uploading'), 'cloud', { state: 'uploading' });
  const { code, out } = await world.run(...command.split(' '));
  expect([code, out.printed]).toEqual([1, '']);
  expect(out.noted).toMatch(/^nodepool: (there is no|the configuration has no|.* is in progress)/);
});
