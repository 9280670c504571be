/** Generates the documentation page from the texts of the rules. */

import { RULE_GROUPS } from './rule-groups.js';
import { CONTRACT_VERSION } from './contract.js';
import type { Rule } from './rule.js';

/** Returns the contract as Markdown. */
export function contractPage(): string {
  const parts = [
    '# The driver contract',
    `Version ${CONTRACT_VERSION}. What a driver of Nodepool must do, and why. Each rule is a test of \`@nodepool/driver-kit\`, which every driver of ours ` +
      'runs, and which yours can run too; this page is made from the texts of those tests.',
    'A rule keeps its id for ever. New rules come with a new minor version of the contract, and a rule that asks for something else than before with a ' +
      'new major one, which is that of the kit. A test that needs what the test cloud cannot do is skipped, and says so: what it needs stands below its rule.',
    ...RULE_GROUPS.flatMap(({ title, text, rules }) => [`## ${title}`, text, ...rules.flatMap(ruleParts)]),
  ];
  return `${parts.join('\n\n')}\n`;
}

function ruleParts({ id, since, title, text, needs, appliesTo = 'creating' }: Rule): string[] {
  const facts = [`Since contract ${since}.`];
  if (needs.length > 0) facts.push(`Needs ${needs.map((ability) => `\`${ability}\``).join(', ')}.`);
  if (appliesTo === 'supplying') facts.push('For drivers that declare machines.');
  else if (appliesTo === 'all') facts.push('For all drivers, also those that create no instances.');
  return [`### \`${id}\`: ${title}`, text, facts.join(' ')];
}
