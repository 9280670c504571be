// Loads a configuration without drivers.
'use strict';

const assert = require('node:assert');
const { mkdtempSync, rmSync, writeFileSync } = require('node:fs');
const { tmpdir } = require('node:os');
const { join } = require('node:path');
const { loadConfig } = require('@nodepool/config');

async function main() {
  const folder = mkdtempSync(join(tmpdir(), 'nodepool-smoke-'));
  const file = join(folder, 'nodepool.yaml');
  writeFileSync(file, 'zookeeper-servers:\n  - host: localhost\nlabels:\n  - name: debian\n');
  const loaded = await loadConfig({ file, env: {} });
  rmSync(folder, { recursive: true });
  assert.ok(loaded.ok, JSON.stringify(loaded.problems));
  assert.deepStrictEqual([...loaded.config.labels.keys()], ['debian']);
}

main().catch((error) => {
  console.error(error);
  process.exitCode = 1;
});
