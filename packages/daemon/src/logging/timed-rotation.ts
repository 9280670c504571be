/** Times and names of log files that are rotated by time, as with Python's `TimedRotatingFileHandler`. */

/** Seconds, minutes, hours, days, midnight, or the end of a day of the week, `W0` for Monday. */
const UNITS = /^(?:S|M|H|D|MIDNIGHT|W[0-6])$/;
const SECONDS: Readonly<Record<string, number>> = { S: 1, M: 60, H: 3600, D: 86_400 };

/** The file becomes `<file>.<start of its time>`. */
export interface TimedRotation {
  /** See `isRotationUnit`; in capitals. */
  readonly unit: string;
  readonly interval: number;
  /** Number of older files; 0 keeps all. */
  readonly keep: number;
  readonly utc: boolean;
}

export function isRotationUnit(text: string): boolean {
  return UNITS.test(text);
}

/** Matches the suffixes of `suffixOf`. */
export const SUFFIX = /^\d{4}-\d{2}-\d{2}(?:_\d{2}(?:-\d{2}(?:-\d{2})?)?)?$/;

/** Returns the end (unix milliseconds) of the file's time that contains or begins at `from`. */
export function endOfTime({ unit, interval, utc }: TimedRotation, from: number): number {
  const seconds = SECONDS[unit];
  if (seconds !== undefined) return from + seconds * interval * 1000;
  const date = new Date(from);
  const [day, weekday] = utc ? [date.getUTCDate(), date.getUTCDay()] : [date.getDate(), date.getDay()];
  // Sunday is 6 in Python and 0 in JavaScript.
  const wait = unit === 'MIDNIGHT' ? 0 : (Number(unit.slice(1)) - ((weekday + 6) % 7) + 7) % 7;
  const more = (interval - 1) * (unit === 'MIDNIGHT' ? 1 : 7);
  return atMidnight(date, day + 1 + wait + more, utc);
}

/** Returns the suffix of the file whose time ends at `end`. */
export function suffixOf(rotation: TimedRotation, end: number): string {
  const { unit, interval, utc } = rotation;
  const seconds = SECONDS[unit];
  const date = new Date(end);
  const days = interval * (unit === 'MIDNIGHT' ? 1 : 7);
  const start = new Date(
    seconds === undefined
      ? atMidnight(date, (utc ? date.getUTCDate() : date.getDate()) - days, utc)
      : end - seconds * interval * 1000,
  );
  const parts = utc
    ? [start.getUTCMonth() + 1, start.getUTCDate(), start.getUTCHours(), start.getUTCMinutes(), start.getUTCSeconds()]
    : [start.getMonth() + 1, start.getDate(), start.getHours(), start.getMinutes(), start.getSeconds()];
  const [month, day, ...time] = parts.map((part) => String(part).padStart(2, '0'));
  const digits = { H: 1, M: 2, S: 3 }[unit] ?? 0;
  const year = utc ? start.getUTCFullYear() : start.getFullYear();
  return [`${year}-${month}-${day}`, ...(digits === 0 ? [] : [time.slice(0, digits).join('-')])].join('_');
}

function atMidnight(date: Date, day: number, utc: boolean): number {
  return utc
    ? Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), day)
    : new Date(date.getFullYear(), date.getMonth(), day).getTime();
}
