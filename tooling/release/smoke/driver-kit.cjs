// Asserts that the contract has rules with texts.
'use strict';

const assert = require('node:assert');
const { CONTRACT_VERSION, RULE_GROUPS } = require('@nodepool/driver-kit');

assert.match(CONTRACT_VERSION, /^\d+\.\d+$/);
const rules = RULE_GROUPS.flatMap((group) => group.rules);
assert.ok(rules.length > 0);
for (const rule of rules) assert.ok(rule.text.length > 0, rule.id);
