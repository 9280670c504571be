import { expect, test } from '@jest/globals';
import { blockMessage } from '../src/diagnostics/block-watch.js';

const SDK = '/opt/node_modules/@nodepool/driver-aws/node_modules/sdk/index.js';

test.each([
  ['a driver that computes', [SDK], 'aws', /^A driver blocked the event loop, and with it every provider$/],
  [
    'other code',
    ['/opt/node_modules/yaml/index.js', 'node:internal/timers'],
    undefined,
    /^The event loop was blocked$/,
  ],
  ['a driver whose library is loaded', ['node:internal/modules/cjs/loader', SDK], 'aws', /while code was loaded/],
])('a block by %s', (_what, files, driver, message) => {
  expect(blockMessage(files, driver)).toMatch(message);
});
