import type { JsonObject } from '../model/json.js';

/** A JSON Schema (draft 2020-12 as ajv reads it). */
export type JsonSchema = JsonObject;
