/** Reads the `--help` text of a program or command, as commander prints it. */

/** An option, argument, command or signal with its explanation. */
export interface Entry {
  readonly term: string;
  readonly text: string;
}

export interface Help {
  /** The program with its command, e.g. `nodepool list`. */
  readonly program: string;
  readonly usage: string;
  readonly description: string;
  readonly commandArguments: readonly Entry[];
  /** All options except `--help` and `--version`, which every program has. */
  readonly options: readonly Entry[];
  readonly commands: readonly Entry[];
  readonly signals: readonly Entry[];
  /** Lines after the lists, e.g. the exit statuses, without the examples. */
  readonly notes: readonly string[];
}

/** The default of a switch or of a list, which commander prints although it says nothing. */
const NO_DEFAULT = / ?\(default: (?:false|\[\])\)$/;

/** Throws if the text has no usage, or no example at its end. */
export function parseHelp(program: string, text: string): Help {
  const [, help] = /^(.*?)^Example/ms.exec(text) ?? [];
  if (help === undefined) throw new Error(`the help text of ${program} has no example`);
  const [usage = '', ...paragraphs] = help.trimEnd().split(/\n\n+/);
  if (!usage.startsWith('Usage: ')) throw new Error(`the help text of ${program} does not begin with its usage`);
  const lists = new Map<string, readonly Entry[]>();
  const prose: string[][] = [];
  for (const paragraph of paragraphs) {
    const lines = paragraph.split('\n');
    const [, title] = /^(Arguments|Options|Commands|Signals):$/.exec(lines[0] ?? '') ?? [];
    if (title !== undefined) lists.set(title, entriesOf(lines.slice(1)));
    else if (lines.every((line) => line.startsWith('  '))) lists.set('Options', entriesOf(lines));
    else prose.push(lines);
  }
  const [description = [], ...notes] = prose;
  return {
    program,
    usage: usage.replace('Usage: ', '').replaceAll(/\n */g, '\n'),
    description: description.join(' '),
    commandArguments: lists.get('Arguments') ?? [],
    options: (lists.get('Options') ?? []).filter(({ term }) => !/--(help|version)\b/.test(term)),
    commands: lists.get('Commands') ?? [],
    signals: lists.get('Signals') ?? [],
    notes: notes.flat(),
  };
}

/** An entry begins with two spaces; further lines of it are indented more. */
function entriesOf(lines: readonly string[]): readonly Entry[] {
  const entries: { term: string; text: string }[] = [];
  for (const line of lines) {
    const last = entries.at(-1);
    const [, term, text = ''] = /^ {2}(\S.*?)(?: {2,}(.*))?$/.exec(line) ?? [];
    if (term !== undefined) entries.push({ term, text });
    else if (last !== undefined) last.text = `${last.text} ${line.trim()}`.trim();
  }
  return entries.map(({ term, text }) => ({ term, text: text.replace(NO_DEFAULT, '') }));
}
