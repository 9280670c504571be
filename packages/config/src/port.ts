import type { ConfigDocument } from './document.js';
import type { KeyPath } from './problems.js';
import type { ProblemReport } from './report.js';

/** Reports a text of digits that is no port. The schema checks numbers and other texts. */
export function checkPortText(document: ConfigDocument, path: KeyPath, report: ProblemReport): void {
  const value = document.valueAt(path);
  if (typeof value !== 'string' || !/^[0-9]+$/.test(value)) return;
  const port = Number(value);
  if (port < 1 || port > 65_535) report.at(document, path, { expected: 'a port from 1 to 65535' });
}
