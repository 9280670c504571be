/**
 * The part of Go's `text/template` that scripts for the installation of runners use: fields, conditions on fields,
 * comments, and the removal of white space by `{{-` and `-}}`.
 */

import { CommandError } from '../command-context.js';

export type TemplateValue = string | boolean | ReadonlyMap<string, string>;
export type TemplateFields = Readonly<Record<string, TemplateValue>>;

const ACTION = /\{\{(-\s)?\s*(\/\*[\s\S]*?\*\/|[\s\S]*?)\s*(\s-)?\}\}/g;
const FIELD = /^\.([A-Za-z_]\w*)(?:\.([A-Za-z_]\w*))?$/;
const QUOTED_KEY = /^index\s+\.([A-Za-z_]\w*)\s+"([^"\\]*)"$/;

/** An open condition. */
interface Block {
  /** True if the enclosing text is part of the result. */
  readonly outer: boolean;
  readonly condition: boolean;
  hasElse: boolean;
}

/** Returns the text of a template. Throws `CommandError` for actions of another kind, and for unknown fields. */
export function renderTemplate(template: string, fields: TemplateFields): string {
  const blocks: Block[] = [];
  let output = '';
  let visible = true;
  let position = 0;
  let trimNext = false;
  const emit = (text: string, trimEnd: boolean): void => {
    const start = trimNext ? text.trimStart() : text;
    if (visible) output += trimEnd ? start.trimEnd() : start;
  };
  for (const match of template.matchAll(ACTION)) {
    const [all, trimBefore, action = '', trimAfter] = match;
    emit(template.slice(position, match.index), trimBefore !== undefined);
    position = match.index + all.length;
    trimNext = trimAfter !== undefined;
    const [keyword] = action.split(/\s/);
    if (action.startsWith('/*')) continue;
    if (keyword === 'if') {
      const condition = isTrue(valueOf(action.slice(2).trim(), fields));
      blocks.push({ outer: visible, condition, hasElse: false });
      visible &&= condition;
    } else if (action === 'else') {
      const block = blocks.at(-1);
      if (block === undefined || block.hasElse) throw refused(action);
      block.hasElse = true;
      visible = block.outer && !block.condition;
    } else if (action === 'end') {
      const block = blocks.pop();
      if (block === undefined) throw refused(action);
      visible = block.outer;
    } else if (visible) {
      const value = valueOf(action, fields);
      if (typeof value !== 'string' && typeof value !== 'boolean') throw refused(action);
      output += String(value);
    }
  }
  if (blocks.length > 0) throw new CommandError('the template has a condition without its end');
  emit(template.slice(position), false);
  return output;
}

function valueOf(expression: string, fields: TemplateFields): TemplateValue {
  const [, name = '', key] = FIELD.exec(expression) ?? QUOTED_KEY.exec(expression) ?? [];
  const value = Object.hasOwn(fields, name) ? fields[name] : undefined;
  if (value === undefined) throw refused(expression);
  if (key === undefined) return value;
  if (typeof value === 'string' || typeof value === 'boolean') throw refused(expression);
  // Go prints this for the missing key of a map of texts: nothing.
  return value.get(key) ?? '';
}

function isTrue(value: TemplateValue): boolean {
  if (typeof value === 'boolean') return value;
  return typeof value === 'string' ? value !== '' : value.size > 0;
}

function refused(action: string): CommandError {
  return new CommandError(`the template's action ${JSON.stringify(action)} is not supported`);
}
