/** Every command that takes the id or the name of an object refuses one that does not exist, and changes nothing. */

import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { World } from './world.js';

let world: World;
beforeEach(async () => {
  world = new World();
  await world.start();
});
afterEach(() => world.stop());

const UPLOAD = ['--provider', 'nowhere', '--image', 'none', '--build-id', '7', '--upload-id'];

it.each<readonly [readonly string[], RegExp]>([
  [['delete', '42'], /there is no node 0000000042/],
  [['delete', '42', '--now'], /there is no node 0000000042/],
  [['delete', 'abc'], /"abc" is not the id of a node/],
  [['delete', '-5'], /"-5" is not the id of a node/],
  [['delete', '4.2'], /"4.2" is not the id of a node/],
  [['delete', '12345678901'], /"12345678901" is not the id of a node/],
  [['hold', '42'], /there is no node 0000000042/],
  [['hold', 'abc'], /"abc" is not the id of a node/],
  [['wait', 'node', '42'], /there is no node 0000000042/],
  [['wait', 'node', 'abc'], /"abc" is not the id of a node/],
  [['wait', 'request', '200-0000000001'], /there is no request 200-0000000001/],
  [['explain', 'node', 'abc'], /"abc"/],
  [['explain', 'node', '42'], /there is no node/],
  [['explain', 'request', 'none'], /there is no request "none"/],
  [['explain', 'label', 'none'], /there is no label "none"/],
  [['describe', 'node', 'abc'], /"abc"/],
  [['describe', 'node', '42'], /there is no node/],
  [['describe', 'request', 'none'], /there is no request "none"/],
  [['describe', 'label', 'none'], /there is no label "none"/],
  [['describe', 'provider', 'none'], /there is no provider "none"/],
  [['info', 'none'], /there is no provider "none"/],
  [['erase', 'none', '--force'], /there is no provider "none"/],
  [['orphans', 'list', 'none'], /there is no provider "none"/],
  [['orphans', 'adopt', 'none'], /there is no provider "none"/],
  [['orphans', 'delete', 'none', '--force'], /there is no provider "none"/],
  [['orphans', 'suspend', 'none'], /there is no provider "none"/],
  [['orphans', 'confirm', 'none', '--force'], /there is no provider "none"/],
  [['alien-image-list', 'none'], /there is no provider "none"/],
  [['alien-image-list', 'removed'], /provider removed is not configured/],
  [['image-build', 'none'], /has no disk image "none"/],
  [['image-pause', 'none'], /has no disk image "none"/],
  [['image-unpause', 'none'], /has no disk image "none"/],
  [['dib-image-delete', 'none-7'], /there is no build "none-7"/],
  [['dib-image-delete', 'none'], /there is no build "none"/],
  [['image-delete', ...UPLOAD, '1'], /there is no upload 0000000001 of build 7/],
  [['image-delete', ...UPLOAD, 'abc'], /there is no upload/],
])('nodepool %j', async (args, message) => {
  const kept = await world.node({ provider: 'removed', state: 'ready' });
  const before = world.store.nodes.get(kept);
  const { code, out } = await world.run(...args);
  expect(out.noted).toMatch(message);
  expect(code).toBeGreaterThan(0);
  expect(world.store.nodes.get(kept)).toEqual(before);
});
