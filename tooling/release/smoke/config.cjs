// Loads a configuration without drivers.
'use strict';

const assert = require('node:assert');
const { writeFileSync } = require('node:fs');
const { join } = require('node:path');
const { loadConfig } = require('@nodepool/config');

async function main() {
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
