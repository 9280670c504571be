#!/usr/bin/env node
/**
 * Starts a simulated GitHub, prints its addresses as one line of JSON and every event on the standard error output, and
 * runs until SIGTERM or SIGINT.
 *
 *   --port N, --actions-port N, --control-port N   default: free ones
 *   --latency-ms N, --long-poll-ms N, --session-expiry-ms N, --pickup-ms N, --runner-timeout-ms N, --job-lock-ms N
 *   --option NAME=VALUE   a setting, e.g. assignment=acquire; can be repeated
 */

import { integerIn, runProgram } from '@nodepool/simulated-cloud';
import { settingsIn } from './control-input.js';
import type { GithubSettings } from './settings.js';
import type { SimulatedGithub } from './api.js';
import { startSimulatedGithub } from './start.js';

interface ProgramSettings extends GithubSettings {
  readonly actionsPort: number;
  readonly controlPort: number;
}

void runProgram<ProgramSettings, SimulatedGithub>({
  settings: {
    'actions-port': 'actionsPort',
    'control-port': 'controlPort',
    'latency-ms': 'latencyMs',
    'long-poll-ms': 'longPollMs',
    'session-expiry-ms': 'sessionExpiryMs',
    'pickup-ms': 'pickupMs',
    'runner-timeout-ms': 'runnerTimeoutMs',
    'job-lock-ms': 'jobLockMs',
  },
  repeated: 'option',
  start({ port, settings: { actionsPort = 0, controlPort = 0, ...settings } }, options) {
    const more = settingsIn(Object.fromEntries(options.map(settingIn)));
    return startSimulatedGithub({
      ...{ port, actionsPort, controlPort, settings: { ...settings, ...more } },
      print: ({ time, text }) => process.stderr.write(`${time} ${text}\n`),
    });
  },
  describe: ({ url, actionsUrl, controlUrl, clientId, installations, appKeyFile, tokenFile, runner }) => ({
    ...{ url, actionsUrl, controlUrl, clientId, installations, appKeyFile, tokenFile, runner },
  }),
});

function settingIn(text: string): readonly [name: string, value: string | number | boolean] {
  const [, name = '', value = ''] = /^(\w+)=(.+)$/.exec(text) ?? [];
  if (name === '') throw new Error(`--option takes NAME=VALUE, e.g. assignment=acquire, not "${text}"`);
  if (/^\d+$/.test(value)) return [name, integerIn(name, value)];
  return [name, value === 'true' || value === 'false' ? value === 'true' : value];
}
