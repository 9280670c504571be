'use strict';
// The transformer of swc with a cache key without the package under test: a source file is compiled once for the tests
// of all packages that import it. The key has the file's whole path, which stack traces show, its content and options.

const swc = require('@swc/jest');

const config = { rootDir: '/' };

/** A deliberate defect in one file, which `pnpm mutate` tests. */
const mutation = JSON.parse(process.env.NODEPOOL_MUTATION ?? 'null');

function mutated(source, file) {
  return file === mutation?.file ? source.replace(mutation.find, () => mutation.replace) : source;
}

module.exports = {
  createTransformer(options) {
    const transformer = swc.createTransformer(options);
    const getCacheKey = (source, file, jest) =>
      transformer.getCacheKey(mutated(source, file), file, { ...jest, config, configString: '' });
    const process = (source, file, jest) => transformer.process(mutated(source, file), file, jest);
    return { ...transformer, getCacheKey, process };
  },
};
