/** Settings for uploading images to a provider: keys that are common to all drivers with disk images. */

import type { JsonObject } from '../model/json.js';
import type { JsonSchema } from './json-schema.js';
import { millisecondsAt, stringAt } from './section.js';

export interface ImageUploadSettings {
  /** Template of an image's name in the cloud: placeholders `{image_name}`, `{timestamp}` and `{upload_id}`. */
  readonly imageNameFormat: string;
  /** Program that runs before an uploaded image is used. Arguments: the provider, the external id and the file. */
  readonly postUploadHook: string | undefined;
  /** Maximum duration of one upload. */
  readonly imageUploadTimeoutMs: number;
  /** Maximum time between two progress reports of an upload. */
  readonly imageUploadIdleTimeoutMs: number;
}

const DEFAULT_NAME_FORMAT = '{image_name}-{timestamp}';
const DEFAULT_TIMEOUT_SECONDS = 3600;
const DEFAULT_IDLE_TIMEOUT_SECONDS = 900;

/** Properties for the schema of a provider. A driver includes those that it supports. */
export const imageUploadProperties = {
  'image-name-format': {
    type: 'string',
    minLength: 1,
    default: DEFAULT_NAME_FORMAT,
    description: 'Name of an uploaded image, from `{image_name}`, `{timestamp}` (unix seconds) and `{upload_id}`.',
  },
  'post-upload-hook': {
    type: 'string',
    minLength: 1,
    description:
      "Program that runs after each upload with three arguments: the provider's name, the image's external id and its file. Nodes use the image only if the program exits with 0.",
  },
  'image-upload-timeout': {
    type: 'number',
    exclusiveMinimum: 0,
    default: DEFAULT_TIMEOUT_SECONDS,
    description: 'Maximum seconds of an upload.',
  },
  'image-upload-idle-timeout': {
    type: 'number',
    exclusiveMinimum: 0,
    default: DEFAULT_IDLE_TIMEOUT_SECONDS,
    description: 'Maximum seconds without progress, until the cloud has processed the image.',
  },
} as const satisfies Readonly<Record<string, JsonSchema>>;

/** Reads the settings from a section that has passed its schema. */
export function loadImageUploadSettings(section: JsonObject): ImageUploadSettings {
  return {
    imageNameFormat: stringAt(section, 'image-name-format') ?? DEFAULT_NAME_FORMAT,
    postUploadHook: stringAt(section, 'post-upload-hook'),
    imageUploadTimeoutMs: millisecondsAt(section, 'image-upload-timeout') ?? DEFAULT_TIMEOUT_SECONDS * 1000,
    imageUploadIdleTimeoutMs:
      millisecondsAt(section, 'image-upload-idle-timeout') ?? DEFAULT_IDLE_TIMEOUT_SECONDS * 1000,
  };
}
