/** YAML as PyYAML's safe loader reads it, with the place of every value. Reads text only; files are the caller's business. */
export { YamlDocument, type Span, type YamlPath, type YamlPlace, type YamlValue } from './document.js';
export { parseYaml, parseYamlInParts, type ParsedYaml } from './parse.js';
export { LineIndex, type LinePosition } from './lines.js';
export type { YamlProblem } from './problem.js';
