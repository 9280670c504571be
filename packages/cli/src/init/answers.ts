/** Gets the settings and choices of a first configuration from options, from lists of the cloud, and from the user. */

import type { SiteChoice, SiteDescription, SiteGuide, SiteList, SiteOption } from '@nodepool/core';
import { SITE_CHOICES } from '@nodepool/core';
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

/** Collects the errors of several answers, so that a command without a terminal names everything that is missing. */
class Answers {
  private readonly errors: string[] = [];

  /** Resolves with the answer. Resolves with undefined, after recording the message, if it is missing or wrong. */
  async get(answer: () => string | Promise<string>): Promise<string | undefined> {
    try {
      return await answer();
    } catch (error) {
      if (!(error instanceof CommandError)) throw error;
      this.errors.push(error.message);
      return undefined;
    }
  }

  /** Throws one error with all recorded messages; does nothing without any. */
  finish(): void {
    if (this.errors.length > 0) throw new CommandError(this.errors.join('\n'));
  }
}

/** Resolves with the settings of the driver's guide. Optional settings are never asked for. */
export async function settingsOf(
  asking: Asking,
  { settings }: SiteGuide,
  given: Readonly<Record<string, string>>,
): Promise<Readonly<Record<string, string>>> {
  const answers = new Answers();
  const values: Record<string, string> = {};
  for (const { key, question, optional = false } of settings) {
    const value =
      given[key] ??
      (optional ? undefined : await answers.get(() => answerTo(asking, { question, option: `--set ${key}=…` })));
    if (value !== undefined) values[key] = value;
  }
  answers.finish();
  return values;
}

/** Resolves with what to use of the cloud. Rejects with the names that it has for each that is missing or wrong. */
export async function choose(
  asking: Asking,
  { choices }: SiteGuide,
  site: SiteDescription,
  given: Readonly<Partial<Record<SiteChoice, string>>>,
): Promise<Readonly<Partial<Record<SiteChoice, string>>>> {
  const answers = new Answers();
  const chosen: Partial<Record<SiteChoice, string>> = {};
  for (const choice of SITE_CHOICES) {
    const need = choices[choice];
    const wanted = given[choice];
    if (need === undefined) {
      if (wanted !== undefined) throw new CommandError(`the driver has no --${choice}`);
      continue;
    }
    const list = site[choice];
    const needed = need === 'required' || (need === 'if-listed' && (list?.options.length ?? 0) > 0);
    if (wanted === undefined && !needed) continue;
    const value = await answers.get(() =>
      wanted === undefined ? chosenFrom(asking, choice, list) : checked(choice, wanted, list),
    );
    // On a terminal, do not ask further questions after a wrong answer.
    if (value === undefined && asking.ask !== undefined) break;
    if (value !== undefined) chosen[choice] = value;
  }
  answers.finish();
  return chosen;
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
