// Writes dist/generated/compiled-schemas.cjs of packages/config from its compiled sources: the exports of
// src/compiled-schemas.ts as code that needs no compiler of schemas. Runs in the folder of the package.

import { mkdirSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { resolve } from 'node:path';

const require = createRequire(resolve('package.json'));
const { default: standaloneCode } = require('ajv/dist/standalone');
const { createAjv } = require('./dist/create-ajv.js');
const { configSchema, secureSchema } = require('./dist/schema.js');

const ajv = createAjv(require('ajv/dist/2020.js'), { source: true, optimize: true });
ajv.addSchema(configSchema, 'config').addSchema(secureSchema, 'secure');
mkdirSync(resolve('dist', 'generated'), { recursive: true });
writeFileSync(
  resolve('dist', 'generated', 'compiled-schemas.cjs'),
  standaloneCode(ajv, { checkConfig: 'config', checkSecure: 'secure' }),
);
