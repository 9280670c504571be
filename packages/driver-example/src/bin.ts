#!/usr/bin/env node
/** The program `nodepool-example-cloud`: the example cloud as a separate process. */

import { isJsonObject, packageVersion, systemClock, systemRandom, type JsonValue } from '@nodepool/core';
import { seededRandom } from '@nodepool/core/testing';
import { Command, InvalidArgumentError } from 'commander';
import { ExampleCloud } from './cloud/cloud.js';
import { CloudSettingsError, readCloudSettings } from './cloud/settings-reader.js';
import { CLOUD_SETTING_NAMES } from './cloud/settings-schema.js';
import type { CloudSettings } from './cloud/settings.js';
import { serveCloud } from './server.js';

interface Options {
  readonly port: number;
  readonly listen: string;
  readonly seed: number | undefined;
  readonly set: readonly string[];
}

/** Exit code for command-line errors. */
const USAGE_EXIT_CODE = 2;
/** Code of errors other than command-line errors. */
const FAILED = 'failed';

const EXAMPLE = `
Settings (see the package's README.md):
  ${CLOUD_SETTING_NAMES.join(', ')}

Example: a cloud with at most 20 instances, a boot time of 5 to 10 seconds, and one lost answer in ten:
  nodepool-example-cloud --port 8480 --set boot-time=[5,10] --set quota.instances=20 --set faults.lost-answers=0.1
and in nodepool.yaml:
  providers: [{name: demo, driver: example, endpoint: 'http://127.0.0.1:8480', ...}]`;

function commandLine(): Command {
  return new Command('nodepool-example-cloud')
    .description(
      'A small cloud for the driver "example" of Nodepool. Its instances and images are records without machines.',
    )
    .version(packageVersion(__dirname))
    .option('--port <port>', 'port; 0: a free one', readPort, 8480)
    .option('--listen <address>', 'address', '127.0.0.1')
    .option('--seed <number>', 'seed of random events', readSeed)
    .option(
      '--set <key=value>',
      'a setting of the cloud; can be repeated',
      (text, all: readonly string[]) => [...all, text],
      [],
    )
    .addHelpText('after', EXAMPLE)
    .exitOverride(({ code, exitCode }) => process.exit(exitCode === 0 || code === FAILED ? exitCode : USAGE_EXIT_CODE));
}

function readPort(text: string): number {
  const port = Number(text);
  if (!Number.isInteger(port) || port < 0 || port > 65535) throw new InvalidArgumentError('expected 0 to 65535');
  return port;
}

function readSeed(text: string): number {
  const seed = Number(text);
  if (!Number.isInteger(seed)) throw new InvalidArgumentError('expected an integer');
  return seed;
}

/** Reads settings from assignments such as `boot-time=3` and `faults.lost-answers=0.1`. */
function readSettings(assignments: readonly string[]): CloudSettings {
  const section: Record<string, JsonValue> = {};
  for (const assignment of assignments) {
    const [path = '', ...rest] = assignment.split('=');
    const value = readValue(rest.join('='));
    const [key = '', inner] = path.split('.');
    const before = section[key] ?? {};
    if (inner === undefined) section[key] = value;
    else if (isJsonObject(before)) section[key] = { ...before, [inner]: value };
    else throw new CloudSettingsError(key, `an object, because of ${path}`);
  }
  return readCloudSettings(section);
}

function readValue(text: string): JsonValue {
  try {
    return JSON.parse(text) as JsonValue;
  } catch {
    return text;
  }
}

async function main(): Promise<void> {
  // A reader such as `head` may close the pipe early.
  process.stdout.on('error', () => process.exit());
  const command = commandLine().parse();
  const options = command.opts<Options>();
  try {
    const random = options.seed === undefined ? systemRandom : seededRandom(options.seed);
    const cloud = new ExampleCloud({ clock: systemClock, random, settings: readSettings(options.set) });
    const server = await serveCloud(cloud, { port: options.port, address: options.listen });
    const end = (): void => {
      cloud.close();
      void server.stop();
    };
    process.once('SIGINT', end);
    process.once('SIGTERM', end);
    process.stdout.write(`${server.endpoint}\n`);
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    const options = error instanceof CloudSettingsError ? {} : { code: FAILED, exitCode: 1 };
    command.error(`error: ${message}`, options);
  }
}

void main();
