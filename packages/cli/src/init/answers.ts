/** Gets the settings and choices of a first configuration from options, from lists of the cloud, and from the user. */

import { readFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import type { SiteChoice, SiteDescription, SiteGuide, SiteList, SiteOption } from '@nodepool/core';
import { fileFaultOf, SITE_CHOICES } from '@nodepool/core';
import { CommandError, type Ask, type Output } from '../command-context.js';

/** Number of entries of a list that a question or a message shows. */
const SHOWN = 20;

export interface Asking {
  readonly out: Output;
  /** Undefined without a terminal: a missing answer then ends the command. */
  readonly ask: Ask | undefined;
  readonly interrupted: AbortSignal;
}

/** Resolves with the value of an option, or the answer of the user. Rejects if there is neither. */
export async function answerTo(
  { ask, interrupted }: Asking,
  { given, question, option, fallback }: { given?: string; question: string; option: string; fallback?: string },
): Promise<string> {
  if (given !== undefined) return given;
  if (ask === undefined) {
    if (fallback !== undefined) return fallback;
    throw new CommandError(`the ${question} is not known; give it with ${option}`);
  }
  const shown = fallback === undefined ? '' : ` [${fallback}]`;
  const answer = (await ask(`${sentence(question)}${shown}: `, interrupted)).trim();
  if (answer !== '') return answer;
  if (fallback !== undefined) return fallback;
  throw new CommandError(`the ${question} is needed`);
}

/** Resolves with the settings of the driver's guide. Optional settings are never asked for. */
export async function settingsOf(
  asking: Asking,
  { settings }: SiteGuide,
  given: Readonly<Record<string, string>>,
): Promise<Readonly<Record<string, string>>> {
  const answers: Record<string, string> = {};
  const missing = new MissingAnswers(asking);
  for (const { key, question, optional = false, publicKey = false } of settings) {
    const value = given[key];
    if (value === undefined && optional) continue;
    await missing.unless(async () => {
      const answer = value ?? (await answerTo(asking, { question, option: `--set ${key}=…` }));
      answers[key] = publicKey ? await withoutPath(answer) : answer;
    });
  }
  missing.check();
  return answers;
}

/** Resolves with the key in a `.pub` file; with other answers unchanged. Rejects if there is no such file. */
async function withoutPath(answer: string): Promise<string> {
  if (!/^\S+\.pub$/.test(answer)) return answer;
  const path = answer.replace(/^~(?=\/)/, homedir());
  const text = await readFile(path, 'utf8').catch((error: unknown) => {
    throw new CommandError(`the public key ${path} cannot be read: ${fileFaultOf(error)}`);
  });
  return text.trim();
}

/** Resolves with what to use of the cloud. Rejects with the names that it has if one is missing or wrong. */
export async function choose(
  asking: Asking,
  { choices }: SiteGuide,
  site: SiteDescription,
  given: Readonly<Partial<Record<SiteChoice, string>>>,
): Promise<Readonly<Partial<Record<SiteChoice, string>>>> {
  const chosen: Partial<Record<SiteChoice, string>> = {};
  const missing = new MissingAnswers(asking);
  for (const choice of SITE_CHOICES) {
    const need = choices[choice];
    const wanted = given[choice];
    if (need === undefined) {
      if (wanted !== undefined) throw new CommandError(`the driver has no --${choice}`);
      continue;
    }
    const list = site[choice];
    await missing.unless(async () => {
      if (wanted !== undefined) chosen[choice] = checked(choice, wanted, list);
      else if (need === 'required' || (need === 'if-listed' && (list?.options.length ?? 0) > 0)) {
        chosen[choice] = await chosenFrom(asking, choice, list);
      }
    });
  }
  missing.check();
  return chosen;
}

/** Collects missing and wrong answers of a run without a terminal, so that one message names them all. */
class MissingAnswers {
  private readonly messages: string[] = [];

  constructor(private readonly asking: Asking) {}

  async unless(step: () => Promise<void>): Promise<void> {
    try {
      await step();
    } catch (error) {
      if (this.asking.ask !== undefined || !(error instanceof CommandError)) throw error;
      this.messages.push(error.message);
    }
  }

  check(): void {
    if (this.messages.length > 0) throw new CommandError(this.messages.join('\n'));
  }
}

function checked(choice: SiteChoice, wanted: string, list: SiteList | undefined): string {
  if (list === undefined || list.partial === true || list.options.some(({ name }) => name === wanted)) return wanted;
  throw new CommandError(`the cloud has no ${nounOf(choice)} ${JSON.stringify(wanted)}; it has:\n${shown(list)}`);
}

async function chosenFrom(asking: Asking, choice: SiteChoice, list: SiteList | undefined): Promise<string> {
  const noun = nounOf(choice);
  const option = `--${choice}`;
  if (list === undefined) return answerTo(asking, { question: noun, option });
  const { options, partial = false } = list;
  const [first] = options;
  if (first === undefined && !partial) throw new CommandError(`the cloud has no ${noun}; create one first`);
  if (first !== undefined && options.length === 1 && !partial) return first.name;
  if (asking.ask === undefined)
    throw new CommandError(`choose the ${noun} with ${option}; the cloud has:\n${shown(list)}`);
  asking.out.note(`\n${sentence(noun)}s of the cloud:\n${shown(list)}`);
  const fallback = first === undefined ? {} : { fallback: first.name };
  const answer = await answerTo(asking, { question: `${noun}, by number or name`, option, ...fallback });
  const numbered = /^\d+$/.test(answer) ? options[Number(answer) - 1] : undefined;
  return numbered?.name ?? checked(choice, answer, list);
}

function shown({ options }: SiteList): string {
  const rows = options.slice(0, SHOWN).map((option, index) => `  ${index + 1}. ${describe(option)}`);
  const rest = options.length - rows.length;
  return [...rows, ...(rest > 0 ? [`  … and ${rest} more`] : [])].join('\n');
}

export function describe({ name, note }: SiteOption): string {
  return note === undefined ? name : `${name} (${note})`;
}

export function nounOf(choice: SiteChoice): string {
  return choice.replaceAll('-', ' ');
}

function sentence(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}
