import type { JsonObject } from '../model/json.js';

/**
 * A JSON Schema, draft 2020-12 as interpreted by ajv. The annotation `compatible` is false for a key that the Python
 * Nodepool does not know, and true for the schema of a driver that it has.
 */
export type JsonSchema = JsonObject;
