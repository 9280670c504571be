/** `nodepool doctor`: examines ZooKeeper, certificates, clocks, programs, providers, records and disks. */

import { printable } from '@nodepool/core';
import { createRecordList, type ListColumn } from '@nodepool/store';
import { CommandError, type ConsoleContext, type ListFormat, type Output } from '../command-context.js';
import { paint, PLAIN } from '../display.js';
import { counted, SEVERITIES, type Finding } from '../doctor/finding.js';
import { formatData } from '../lists/format-list.js';
import { printList } from '../print-list.js';

const COLUMNS: readonly ListColumn<Finding>[] = [
  { field: 'severity', header: 'Severity', value: ({ severity }) => severity },
  { field: 'check', header: 'Check', value: ({ check }) => check },
  { field: 'object', header: 'Object', value: ({ object }) => object },
  { field: 'reason', header: 'Reason', value: ({ reason }) => reason },
  { field: 'remedy', header: 'Remedy', value: ({ remedy }) => remedy },
];

/** Prints the findings, the worst first. Throws `CommandError` if one of them is an error. */
export function doctor(
  { out }: ConsoleContext,
  findings: readonly Finding[],
  { format }: { readonly format: ListFormat },
): void {
  const sorted = SEVERITIES.flatMap((severity) => findings.filter((finding) => finding.severity === severity));
  if (format === 'json' || format === 'yaml') out.print(formatData(sorted, format));
  else if (format === 'pretty') out.print(textOf(out, sorted));
  else {
    const names = sorted.map(({ check, object }) => `${check}/${object}`);
    printList(out, createRecordList(COLUMNS, 'all', sorted), format, names);
  }
  const errors = findings.filter(({ severity }) => severity === 'error').length;
  const warnings = findings.filter(({ severity }) => severity === 'warning').length;
  const summary = `${counted(errors, 'error')}, ${counted(warnings, 'warning')}`;
  if (errors > 0) throw new CommandError(summary);
  out.note(summary);
}

function textOf(out: Output, findings: readonly Finding[]): string {
  const { color } = out.display?.() ?? PLAIN;
  const width = Math.max(...SEVERITIES.map((severity) => severity.length));
  const lines = findings.flatMap(({ severity, check, object, reason, remedy }) => {
    const word = severity.padEnd(width);
    const first = `${color ? paint(word, severity) : word}  ${check}: ${printable(object)}: ${printable(reason)}`;
    return remedy === null ? [first] : [first, `${' '.repeat(width + 2)}→ ${printable(remedy)}`];
  });
  return lines.join('\n');
}
