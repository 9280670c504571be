/** Generates the documentation page from the titles of the rules. */

import { RULE_GROUPS } from './rule-groups.js';
import { CONTRACT_VERSION } from './contract.js';
import type { Rule } from './rule.js';

const FIRST_VERSION = '1.0';
/** Maximum length of a line of prose (characters). */
const COLUMNS = 120;

export function contractPage(): string {
  const parts = [
    '# The driver contract',
    wrapped(
      'Each rule is a test in `@nodepool/driver-kit`, and [Writing a driver](writing-a-driver.md#tests) shows how to run ' +
        'them. The message of a failed test explains its rule. A test is skipped if the test cloud lacks what it needs.',
    ),
    wrapped(
      `This is version ${CONTRACT_VERSION}. A new minor version adds rules, which are marked with it; a new major version ` +
        'changes requirements. Ids of rules never change. Rules with "all" also apply to drivers that create no instances.',
    ),
    ...RULE_GROUPS.flatMap(({ title, text, rules }) => [
      `## ${title}`,
      ...(text === '' ? [] : [wrapped(text)]),
      rules.map((rule) => wrapped(ruleText(rule), '  ')).join('\n'),
    ]),
  ];
  return `${parts.join('\n\n')}\n`;
}

function ruleText({ id, since, title, appliesTo }: Rule): string {
  const marks = [...(since === FIRST_VERSION ? [] : [since]), ...(appliesTo === 'all' ? ['all'] : [])];
  return `- \`${id}\`: ${title}${marks.length === 0 ? '' : ` (${marks.join(', ')})`}`;
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
