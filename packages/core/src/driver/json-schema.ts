import type { JsonObject } from '../model/json.js';

/** A JSON Schema, draft 2020-12 as interpreted by ajv. */
export type JsonSchema = JsonObject;
