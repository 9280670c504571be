// Creates a folder with a new driver.
'use strict';

const assert = require('node:assert');
const { execFileSync } = require('node:child_process');
const { existsSync, readFileSync } = require('node:fs');
const { join } = require('node:path');

const program = join(process.cwd(), 'node_modules', '.bin', 'create-driver');
const folder = join(process.cwd(), 'made');
execFileSync(program, ['my-cloud', '--framework', 'state-machine', '--folder', folder], { stdio: 'pipe' });

const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
assert.strictEqual(manifest.nodepool.driver, 'my-cloud');
for (const file of ['.gitignore', 'tsconfig.json', 'nodepool.yaml', 'src/driver.ts', 'test/contract.test.ts']) {
  assert.ok(existsSync(join(folder, file)), file);
}
