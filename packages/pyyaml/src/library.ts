/** The values of the YAML library that this package uses. */

import { createRequire } from 'node:module';
import type * as Yaml from 'yaml';

/** In a build the library is one file, which loads several times faster. */
const library = createRequire(__filename)('#yaml') as typeof Yaml;

export const { Composer, CST, Lexer, LineCounter, Parser, YAMLParseError, isAlias, isMap, isScalar, isSeq } = library;
