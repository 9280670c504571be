// Changes a field of a request's record, and preserves a field that the package does not know.
'use strict';

const assert = require('node:assert');
const { requestCodec } = require('@nodepool/store');

const text = '{"state": "requested", "state_time": 5, "node_types": ["debian"], "nodes": [], "added_later": 1}';
const decoded = requestCodec.decode(Buffer.from(text), { id: '300-0000000001' }, 5);
assert.ok(decoded.ok, decoded.reason);
const changed = requestCodec.change(decoded.source, { state: 'pending' });
const record = JSON.parse(Buffer.from(changed.data).toString());
assert.deepStrictEqual([record.state, record.node_types, record.added_later], ['pending', ['debian'], 1]);
