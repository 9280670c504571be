/** Generates the documentation page from the titles of the rules. */

import { RULE_GROUPS } from './rule-groups.js';
import { CONTRACT_VERSION } from './contract.js';

/** Maximum length of a line of prose (characters). */
const COLUMNS = 120;

export function contractPage(): string {
  const parts = [
    '# The driver contract',
    wrapped(
      `Version ${CONTRACT_VERSION}. Each rule is a test in \`@nodepool/driver-kit\` ` +
        '([how to run them](writing-a-driver.md#tests)), which is skipped if the test cloud lacks what it needs. ' +
        'New minor versions add rules, new major versions change them; ids never change.',
    ),
    ...RULE_GROUPS.flatMap(({ title, text, rules }) => [
      `## ${title}`,
      ...(text === '' ? [] : [wrapped(text)]),
      rules.map(({ id, title: requirement }) => wrapped(`- \`${id}\`: ${requirement}`, '  ')).join('\n'),
    ]),
  ];
  return `${parts.join('\n\n')}\n`;
}

/** Wraps a paragraph; `indent` begins its further lines. */
function wrapped(paragraph: string, indent = ''): string {
  const lines = [''];
  for (const word of paragraph.split(' ')) {
    const line = lines.at(-1) ?? '';
    if (line === '') lines[lines.length - 1] = word;
    else if (line.length + 1 + word.length <= COLUMNS) lines[lines.length - 1] = `${line} ${word}`;
    else lines.push(`${indent}${word}`);
  }
  return lines.join('\n');
}
