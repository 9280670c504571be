/** The tests that an uploaded image must pass before requests use it: keys of `diskimages`, also of providers. */

import { isJsonObject, type JsonObject, type JsonValue } from '../model/json.js';
import type { JsonSchema } from './json-schema.js';
import { millisecondsAt, numberAt, stringAt } from './section.js';

/** One node is launched from the upload, and must accept the login and pass the command. */
export interface LaunchTestConfig {
  /** Command line for the shell of the node; undefined for none. */
  readonly command: string | undefined;
  /** Limit of the command. */
  readonly timeoutMs: number;
  /** File with the private key for the login. */
  readonly identity: string | undefined;
}

/** A share of the launches uses a new upload until it is judged. */
export interface CanaryConfig {
  /** Share of the launches, 0 to 1. */
  readonly share: number;
  /** Number of nodes of the candidate after which it is promoted, unless it is rejected before. */
  readonly nodes: number;
  /** Chance that a candidate that is no worse is rejected, 0 to 1. */
  readonly falseAlarms: number;
}

export interface ImageTests {
  readonly launchTest: LaunchTestConfig | undefined;
  readonly canary: CanaryConfig | undefined;
}

export const NO_IMAGE_TESTS: ImageTests = { launchTest: undefined, canary: undefined };

const COMMAND_TIMEOUT_SECONDS = 300;
const CANARY = { share: 0.1, nodes: 30, falseAlarms: 0.05 } as const;
const SHARE_PATTERN = '^[0-9]{1,2}(?:\\.[0-9]+)?%$';

const share: JsonObject = {
  type: ['number', 'string'],
  exclusiveMinimum: 0,
  exclusiveMaximum: 1,
  pattern: SHARE_PATTERN,
};

/** Properties of the schema of a disk image. */
export const imageTestProperties = {
  'launch-test': {
    type: ['boolean', 'object', 'null'],
    compatible: false,
    properties: {
      command: {
        type: 'string',
        minLength: 1,
        description: 'Command that its shell must run with status 0.',
      },
      timeout: {
        type: 'number',
        exclusiveMinimum: 0,
        default: COMMAND_TIMEOUT_SECONDS,
        description: 'Seconds for the command.',
      },
      identity: {
        type: 'string',
        minLength: 1,
        description: "File with the ssh key. Default: those of the launcher's user.",
      },
    },
    additionalProperties: false,
    description:
      'Requests use a new upload only once a node of it accepts logins and has run the command. `true`: without a command.',
  },
  canary: {
    type: ['boolean', 'object', 'null'],
    compatible: false,
    properties: {
      share: { ...share, default: '10%', description: 'That share of the launches.' },
      nodes: {
        type: 'integer',
        minimum: 1,
        default: CANARY.nodes,
        description: 'Nodes of the new upload after which it is promoted.',
      },
      'false-alarms': {
        ...share,
        default: '5%',
        description: 'Maximum chance that an upload that is no worse is rejected.',
      },
    },
    additionalProperties: false,
    description:
      'A share of the launches uses a new upload until it is promoted, or rejected for its failures. `true`: with the defaults.',
  },
} as const satisfies Readonly<Record<string, JsonSchema>>;

/** Reads the tests of a section. Absent keys have the values of `inherited`; `false` demands no test. */
export function loadImageTests(section: JsonObject, inherited: ImageTests = NO_IMAGE_TESTS): ImageTests {
  return {
    launchTest: setting(section['launch-test'], inherited.launchTest, (settings) => ({
      command: stringAt(settings, 'command'),
      timeoutMs: millisecondsAt(settings, 'timeout') ?? COMMAND_TIMEOUT_SECONDS * 1000,
      identity: stringAt(settings, 'identity'),
    })),
    canary: setting(section['canary'], inherited.canary, (settings) => ({
      share: shareAt(settings, 'share') ?? CANARY.share,
      nodes: numberAt(settings, 'nodes') ?? CANARY.nodes,
      falseAlarms: shareAt(settings, 'false-alarms') ?? CANARY.falseAlarms,
    })),
  };
}

/** Returns true if an upload is used only after a test. */
export function hasImageTests({ launchTest, canary }: ImageTests): boolean {
  return launchTest !== undefined || canary !== undefined;
}

function setting<T>(
  value: JsonValue | undefined,
  inherited: T | undefined,
  read: (settings: JsonObject) => T,
): T | undefined {
  if (value === undefined || value === null) return inherited;
  if (value === false) return undefined;
  return read(isJsonObject(value) ? value : {});
}

/** Returns a share that is written as a number from 0 to 1 or as a percentage. */
function shareAt(section: JsonObject, key: string): number | undefined {
  const text = stringAt(section, key);
  if (text?.endsWith('%') !== true) return numberAt(section, key);
  return Number(text.slice(0, -1)) / 100;
}
