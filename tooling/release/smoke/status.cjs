// Records a decision, and loads the pages.
'use strict';

const { DecisionLog, NodeTally } = require('@nodepool/status');
const { createWebServer } = require('@nodepool/status/web');
const clock = { now: () => 0, monotonic: () => 0, schedule: () => ({ cancel: () => undefined }) };
const decisions = new DecisionLog({ clock });
decisions.record('request', '200-0000000000', 'cloud/main', 'accepted');
if (decisions.size !== 1) throw new Error('the decision is not recorded');
if (typeof NodeTally !== 'function' || typeof createWebServer !== 'function') throw new Error('names are missing');
