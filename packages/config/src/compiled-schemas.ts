/** The compiled schemas of the configuration. The build replaces this module by code that needs no compiler. */

import * as ajvModule from 'ajv/dist/2020.js';
import { createAjv } from './create-ajv.js';
import { configSchema, secureSchema } from './schema.js';

const ajv = createAjv(ajvModule);

export const checkConfig = ajv.compile(configSchema);
export const checkSecure = ajv.compile(secureSchema);
