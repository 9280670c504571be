// Computes a quota and runs a timer of the virtual clock.
'use strict';

const assert = require('node:assert');
const { QuotaInformation } = require('@nodepool/core');
const { VirtualClock } = require('@nodepool/core/testing');

async function main() {
  const limit = QuotaInformation.limit({ instances: 2, ram: -1 });
  assert.ok(limit.fits(QuotaInformation.use({ instances: 2, ram: 8192 })));
  assert.ok(!limit.fits(QuotaInformation.use({ instances: 3 })));

  const clock = new VirtualClock();
  let ran = false;
  clock.schedule(1000, () => (ran = true));
  await clock.advance(1000);
  assert.ok(ran);
}

main().catch((error) => {
  console.error(error);
  process.exitCode = 1;
});
