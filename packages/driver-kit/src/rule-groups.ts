import type { RuleGroup } from './rule.js';
import { backed } from './rules/backed.js';
import { calls } from './rules/calls.js';
import { client } from './rules/client.js';
import { configuration } from './rules/configuration.js';
import { copies } from './rules/copies.js';
import { faults } from './rules/faults.js';
import { ids } from './rules/ids.js';
import { images } from './rules/images.js';
import { life } from './rules/life.js';
import { amounts, errors } from './rules/limits.js';
import { listings } from './rules/listings.js';
import { lookalikes } from './rules/lookalikes.js';
import { outcomes } from './rules/outcomes.js';
import { packages } from './rules/package.js';
import { resumption } from './rules/resumption.js';
import { site } from './rules/site.js';
import { stopping } from './rules/stopping.js';
import { supply } from './rules/supply.js';

export const RULE_GROUPS: readonly RuleGroup[] = [
  life,
  outcomes,
  faults,
  ids,
  resumption,
  listings,
  errors,
  amounts,
  calls,
  client,
  stopping,
  images,
  lookalikes,
  copies,
  supply,
  backed,
  configuration,
  site,
  packages,
];
