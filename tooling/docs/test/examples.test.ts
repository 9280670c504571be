/** The metrics in the examples for monitoring exist. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import * as bridgeGithub from '@nodepool/bridge-github';
import * as builder from '@nodepool/builder';
import * as core from '@nodepool/core';
import * as daemon from '@nodepool/daemon';
import * as gateway from '@nodepool/gateway';
import * as launcher from '@nodepool/launcher';
import * as status from '@nodepool/status';
import { seriesNames } from '../src/reference/metrics.js';

const EXAMPLES = join(__dirname, '..', '..', '..', 'docs', 'examples');

it('the alert rules use only series that a program reports', () => {
  const series = seriesNames(launcher, status, builder, gateway, bridgeGithub, core, daemon);
  const rules = readFileSync(join(EXAMPLES, 'alerts.yaml'), 'utf8');
  const used = [...new Set(rules.match(/\bnodepool_[a-z_]+/gu))];
  expect(used.length).toBeGreaterThan(4);
  expect(used.filter((name) => !series.has(name))).toEqual([]);
});
