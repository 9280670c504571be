export { DayError, fileSource, readDay, type DaySource } from './day/read-day.js';
export type { Day } from './day/day.js';
export { replay, type ReplayOptions } from './replay.js';
