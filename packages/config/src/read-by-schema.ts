import { isJsonObject, type JsonObject, type JsonSchema, type JsonValue } from '@nodepool/core';
import { describeValue, type ConfigProblem, type KeyPath } from './problems.js';
import { ProblemReport } from './report.js';
import { SourceText } from './source.js';
import { compileSchema } from './validate.js';
import { parseYaml } from './yaml.js';

/** Converts a value that conforms to the schema; `report` reports problems that the schema cannot express. */
export interface FileForm<T> {
  readonly schema: JsonSchema;
  interpret(value: JsonObject, report: (path: KeyPath, expected: string, hint?: string) => void): T;
}

/** Reads a YAML file in the form selected by its keys, or returns all problems. */
export async function readBySchema<T>(
  text: string,
  file: string,
  formOf: (value: JsonObject) => FileForm<T>,
): Promise<{ readonly ok: true; readonly value: T } | { readonly ok: false; readonly problems: ConfigProblem[] }> {
  const report = new ProblemReport();
  const { document, problems } = await parseYaml(new SourceText(file, text, {}, false));
  for (const problem of problems) report.settle(problem);
  if (document === undefined || report.size > 0) return { ok: false, problems: report.list() };
  if (!isJsonObject(document.value)) {
    report.at(document, [], { expected: 'a mapping', found: describeValue(document.value, true) });
    return { ok: false, problems: report.list() };
  }
  const value = withoutNulls(document.value);
  const form = formOf(value);
  for (const { path, ...violation } of compileSchema(form.schema)(value)) report.at(document, path, violation);
  if (report.size > 0) return { ok: false, problems: report.list() };
  const interpreted = form.interpret(value, (path, expected, hint) => report.at(document, path, { expected, hint }));
  return report.size > 0 ? { ok: false, problems: report.list() } : { ok: true, value: interpreted };
}

/** Removes keys without a value, which count as absent. */
function withoutNulls(value: JsonObject): JsonObject {
  return JSON.parse(JSON.stringify(value, (_key, each: JsonValue) => each ?? undefined)) as JsonObject;
}
