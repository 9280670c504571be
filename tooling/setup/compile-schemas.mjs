// Compiles the schemas of the configuration (packages/config) to dist/vendor/compiled-schemas.cjs: the exports of
// src/compiled-schemas.ts as code that needs no compiler of schemas. Runs in the folder of the package.

import { createRequire } from 'node:module';
import { resolve } from 'node:path';
import { build } from 'esbuild';

const require = createRequire(resolve('package.json'));
const ajvModule = require('ajv/dist/2020.js');
const { default: standaloneCode } = require('ajv/dist/standalone');

/** Loads a TypeScript module of the package. */
async function load(file) {
  const options = { bundle: true, platform: 'node', target: 'node22', format: 'esm', write: false };
  const result = await build({ ...options, entryPoints: [file], conditions: ['@nodepool/source'], logLevel: 'error' });
  return import(`data:text/javascript;base64,${Buffer.from(result.outputFiles[0].contents).toString('base64')}`);
}

const { createAjv } = await load('src/create-ajv.ts');
const { configSchema, secureSchema } = await load('src/schema.ts');
const ajv = createAjv(ajvModule, { source: true, optimize: true });
ajv.addSchema(configSchema, 'config').addSchema(secureSchema, 'secure');
await build({
  stdin: { contents: standaloneCode(ajv, { checkConfig: 'config', checkSecure: 'secure' }), resolveDir: resolve('.') },
  outfile: resolve('dist', 'vendor', 'compiled-schemas.cjs'),
  bundle: true,
  platform: 'node',
  target: 'node22',
  format: 'cjs',
  logLevel: 'error',
});
