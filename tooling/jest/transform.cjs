'use strict';
// The transformer of swc with a cache key without the package under test: a source file is compiled once for the tests
// of all packages that import it. The key has the file's path in the workspace, its content and the options.

const { join } = require('node:path');
const swc = require('@swc/jest');

const config = { rootDir: join(__dirname, '..', '..') };

module.exports = {
  createTransformer(options) {
    const transformer = swc.createTransformer(options);
    const getCacheKey = (source, file, jest) =>
      transformer.getCacheKey(source, file, { ...jest, config, configString: '' });
    return { ...transformer, getCacheKey };
  },
};
