/** Validates the body of a server creation like nova's schemas and checks. */

import { isJsonObject, type JsonObject, type JsonValue } from '@nodepool/core';
import { pythonRepr } from '../text.js';
import { computeError } from './errors.js';

/** Attributes of a new server by the microversion that introduced them. */
const KNOWN: Readonly<Record<string, number>> = {
  name: 1,
  flavorRef: 1,
  imageRef: 1,
  networks: 1,
  metadata: 1,
  key_name: 1,
  user_data: 1,
  config_drive: 1,
  availability_zone: 1,
  security_groups: 1,
  block_device_mapping_v2: 1,
  min_count: 1,
  max_count: 1,
  adminPass: 1,
  accessIPv4: 1,
  accessIPv6: 1,
  'OS-DCF:diskConfig': 1,
  'os:scheduler_hints': 1,
  personality: 1,
  return_reservation_id: 1,
  description: 19,
  tags: 52,
  trusted_image_certificates: 63,
  host: 74,
  hypervisor_hostname: 74,
  hostname: 90,
};

const MAX_TEXT = 255;
const BASE64 = /^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}[A-Za-z0-9+/=]=)?$/;
const MAX_USER_DATA = 65_535;
const METADATA_KEY = /^[a-zA-Z0-9-_:. ]{1,255}$/;

/** Throws an API error if the body violates the schema. */
export function checkServerBody(server: JsonObject, microversion: number): void {
  const all = `Invalid input for field/attribute server. Value: ${pythonRepr(server)}.`;
  for (const key of ['name', 'flavorRef', ...(microversion >= 37 ? ['networks'] : [])]) {
    if (!(key in server)) throw computeError(400, `${all} '${key}' is a required property`);
  }
  for (const key of Object.keys(server)) {
    if ((KNOWN[key] ?? Infinity) > microversion) {
      throw computeError(400, `${all} Additional properties are not allowed ('${key}' was unexpected)`);
    }
  }
  checkText('name', server['name']);
  checkUserData(server['user_data']);
  checkMetadata(server['metadata']);
}

export function checkMetadata(metadata: JsonValue | undefined): void {
  if (metadata === undefined) return;
  if (!isJsonObject(metadata)) throw invalid('metadata', metadata, `${pythonRepr(metadata)} is not of type 'object'`);
  for (const [key, value] of Object.entries(metadata)) {
    if (!METADATA_KEY.test(key)) {
      const problem = `Additional properties are not allowed (${pythonRepr(key)} was unexpected)`;
      throw invalid('metadata', metadata, problem);
    }
    checkText(key, value);
  }
}

function checkUserData(value: JsonValue | undefined): void {
  if (value === undefined || value === null) return;
  if (typeof value !== 'string' || !BASE64.test(value.replace(/\s/g, '')))
    throw invalid('user_data', value, `${pythonRepr(value)} is not a 'base64'`);
  if (value.length > MAX_USER_DATA) throw invalid('user_data', value, `${pythonRepr(value)} is too long`);
}

function checkText(field: string, value: JsonValue | undefined): void {
  if (typeof value !== 'string') throw invalid(field, value, `${pythonRepr(value)} is not of type 'string'`);
  if (value.length > MAX_TEXT) throw invalid(field, value, `${pythonRepr(value)} is too long`);
}

/** Returns the error for an invalid field; a string value is quoted without JSON syntax. */
function invalid(field: string, value: JsonValue | undefined, problem: string): Error {
  const written = typeof value === 'string' ? value : pythonRepr(value);
  return computeError(400, `Invalid input for field/attribute ${field}. Value: ${written}. ${problem}`);
}

/** Returns the objects of a list. Refuses a list with other elements. */
export function objectsOf(value: JsonValue | undefined, field: string): readonly JsonObject[] {
  if (value === undefined) return [];
  if (Array.isArray(value) && value.every(isJsonObject)) return value;
  throw invalid(field, value, `${pythonRepr(value)} is not of type 'array'`);
}
