/** Generates the documentation page from the texts of the rules. */

import { RULE_GROUPS } from './rule-groups.js';
import { CONTRACT_VERSION } from './contract.js';
import type { Rule } from './rule.js';

const FIRST_VERSION = '1.0';
/** Maximum length of a line of prose (characters). */
const COLUMNS = 120;

export function contractPage(): string {
  const parts = [
    '# The driver contract',
    'This page lists the requirements for Nodepool drivers and their reasons. Each rule is a test in `@nodepool/driver-kit`. ' +
      'All drivers in this repository run these tests; [Writing a driver](writing-a-driver.md) shows how to run them for yours.',
    `This is version ${CONTRACT_VERSION} of the contract. A new minor version adds rules; a new major version changes the requirements of a rule. ` +
      'The id of a rule never changes. Rules without a version are those of 1.0. If a rule needs an ability that the test cloud does not have, its test is skipped with that reason.',
    'This page is generated from the texts of the tests.',
    ...RULE_GROUPS.flatMap(({ title, text, rules }) => [`## ${title}`, text, ...rules.flatMap(ruleParts)]),
  ];
  return `${parts.map((part) => (part.startsWith('#') ? part : wrapped(part))).join('\n\n')}\n`;
}

function ruleParts({ id, since, title, text, needs = [], appliesTo = 'creating' }: Rule): string[] {
  const facts = since === FIRST_VERSION ? [] : [`Since contract ${since}.`];
  if (needs.length > 0) facts.push(`Needs ${needs.map((ability) => `\`${ability}\``).join(', ')}.`);
  if (appliesTo === 'supplying') facts.push('For drivers that declare machines.');
  else if (appliesTo === 'all') facts.push('For all drivers, including those that create no instances.');
  return [`### \`${id}\`: ${title}`, text, ...(facts.length === 0 ? [] : [facts.join(' ')])];
}

function wrapped(paragraph: string): string {
  const lines = [''];
  for (const word of paragraph.split(' ')) {
    const line = lines.at(-1) ?? '';
    if (line === '') lines[lines.length - 1] = word;
    else if (line.length + 1 + word.length <= COLUMNS) lines[lines.length - 1] = `${line} ${word}`;
    else lines.push(word);
  }
  return lines.join('\n');
}
