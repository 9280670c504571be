import type { Ajv2020, Options } from 'ajv/dist/2020.js';

/** Returns a compiler of schemas; the build passes `code`, to write compiled schemas as source code. */
export function createAjv(module: { readonly Ajv2020: typeof Ajv2020 }, code: Options['code'] = {}): Ajv2020 {
  const ajv = new module.Ajv2020({
    allErrors: true,
    verbose: true,
    logger: false,
    strict: true,
    // A rule such as "exactly one of these keys" names keys that are defined one level above it.
    strictRequired: false,
    allowUnionTypes: true,
    // The compiler itself rejects unknown keywords and values. Compiling the schema of schemas would take longer than
    // compiling ours, and the optimization of code that runs once does not pay.
    validateSchema: false,
    code: { optimize: false, ...code },
  });
  ajv.addKeyword({ keyword: 'compatible', schemaType: 'boolean' });
  return ajv;
}
