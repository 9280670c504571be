// Parses scalars that YAML 1.1 and 1.2 read differently.
'use strict';

const assert = require('node:assert');
const { parseYaml } = require('@nodepool/pyyaml');

const { document, problems } = parseYaml('debug: yes\nmode: 0644\nmerged:\n  <<: {a: 1}\n');
assert.deepStrictEqual(problems, []);
assert.deepStrictEqual(document.value, { debug: true, mode: 0o644, merged: { a: 1 } });
