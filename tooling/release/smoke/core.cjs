// The library reads a configuration without drivers, and does its sums.
'use strict';

const assert = require('node:assert');
const { writeFileSync } = require('node:fs');
const { join } = require('node:path');
const { loadConfig, QuotaInformation } = require('@nodepool/core');

async function main() {
  const limit = QuotaInformation.limit({ instances: 2, ram: -1 });
  assert.ok(limit.fits(QuotaInformation.use({ instances: 2, ram: 8192 })));
  assert.ok(!limit.fits(QuotaInformation.use({ instances: 3 })));

  const file = join(process.cwd(), 'nodepool.yaml');
  writeFileSync(file, 'zookeeper-servers:\n  - host: localhost\nlabels:\n  - name: debian\n');
  const loaded = await loadConfig({ file, env: {} });
  assert.ok(loaded.ok, JSON.stringify(loaded.problems));
  assert.deepStrictEqual([...loaded.config.labels.keys()], ['debian']);
}

main().catch((error) => {
  console.error(error);
  process.exitCode = 1;
});
