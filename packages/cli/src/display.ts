/** A terminal, or the lack of one. */
export interface Display {
  /** Width and height in characters; undefined if the output is not a terminal, or one of unknown size. */
  readonly size: TerminalSize | undefined;
  readonly color: boolean;
}

export interface TerminalSize {
  readonly columns: number;
  readonly rows: number;
}

export const COLOR_CHOICES = ['auto', 'always', 'never'] as const;
export type ColorChoice = (typeof COLOR_CHOICES)[number];

/** The display of output that is not a terminal. */
export const PLAIN: Display = { size: undefined, color: false };

/**
 * Returns the display. A terminal that reports 0 columns has an unknown size, e.g. one that `script` creates in a job.
 * With `auto`, only terminals get colors, unless `NO_COLOR` is set or the terminal is dumb.
 */
export function displayOf(
  size: TerminalSize | undefined,
  env: Readonly<Record<string, string | undefined>>,
  choice: ColorChoice,
): Display {
  const wanted = size !== undefined && (env['NO_COLOR'] ?? '') === '' && env['TERM'] !== 'dumb';
  const isKnown = size !== undefined && size.columns > 0 && size.rows > 0;
  return { size: isKnown ? size : undefined, color: choice === 'always' || (choice === 'auto' && wanted) };
}

const RED = 31;
const GREEN = 32;
const YELLOW = 33;
const BLUE = 34;
const MAGENTA = 35;
const GRAY = 90;

/** Colors of states and severities; other words have none. */
const COLORS: Readonly<Record<string, number>> = {
  ready: GREEN,
  fulfilled: GREEN,
  ok: GREEN,
  serving: GREEN,
  'in-use': BLUE,
  hold: MAGENTA,
  paused: MAGENTA,
  init: YELLOW,
  building: YELLOW,
  testing: YELLOW,
  uploading: YELLOW,
  requested: YELLOW,
  pending: YELLOW,
  warning: YELLOW,
  degraded: YELLOW,
  failed: RED,
  aborted: RED,
  gone: RED,
  error: RED,
  unreachable: RED,
  misconfigured: RED,
  unavailable: RED,
  used: GRAY,
  deleting: GRAY,
  deleted: GRAY,
};

/** Colors a text by the word (a state or a severity) that it shows. */
export function paint(text: string, word: string): string {
  const color = COLORS[word];
  return color === undefined ? text : `\u001b[${color}m${text}\u001b[0m`;
}
