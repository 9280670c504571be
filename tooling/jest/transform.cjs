'use strict';
// The transformer of swc with a cache key without the package under test: a source file is compiled once for the tests
// of all packages that import it. The key has the file's whole path, which stack traces show, its content and options.

const swc = require('@swc/jest');

const config = { rootDir: '/' };

module.exports = {
  createTransformer(options) {
    const transformer = swc.createTransformer(options);
    const getCacheKey = (source, file, jest) =>
      transformer.getCacheKey(source, file, { ...jest, config, configString: '' });
    return { ...transformer, getCacheKey };
  },
};
