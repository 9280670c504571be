/** Parses YAML text as PyYAML's safe loader does, with the place of every value. */
export { YamlDocument, type Span, type YamlPath, type YamlPlace, type YamlValue } from './document.js';
export { parseYaml, parseYamlInParts, type ParsedYaml } from './parse.js';
export { LineIndex, type LinePosition } from './lines.js';
export type { RepeatedKey, YamlProblem } from './problem.js';
