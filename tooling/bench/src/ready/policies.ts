/** The ways to keep nodes ready that a replay compares. */

import type { ReadySettings, ScheduleEntry } from '@nodepool/config';

/** A kind of policy with settings from small to large. */
export interface Policy {
  readonly name: string;
  readonly variants: readonly { readonly name: string; readonly ready: ReadySettings }[];
}

const NONE: ReadySettings = { min: 0, max: Infinity, spare: undefined, schedule: [], forecast: undefined };

const CONSTANT_SIZES = [0, 1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32];
const SHARES = [0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.93, 0.95, 0.97, 0.98, 0.99];
const SPARE_SHARES = [0.02, 0.05, 0.1, 0.2, 0.4];
const SCHEDULED_SIZES = [2, 3, 4, 6, 8, 12];
/** Most ready nodes of `spare`. */
const MAX_SPARE = 40;

/** Returns the policies. `busy`: the hours of the trace in which most jobs are submitted. */
export function policies(busy: Pick<ScheduleEntry, 'cron' | 'until' | 'timezone'>): readonly Policy[] {
  const percent = (share: number): string => `${Math.round(share * 1000) / 10} %`;
  return [
    {
      name: 'constant',
      variants: CONSTANT_SIZES.map((min) => ({ name: String(min), ready: { ...NONE, min } })),
    },
    {
      name: 'schedule',
      variants: SCHEDULED_SIZES.map((min) => ({
        name: `1, ${min} in busy hours`,
        ready: { ...NONE, min: 1, schedule: [{ ...busy, min }] },
      })),
    },
    {
      name: 'spare',
      variants: SPARE_SHARES.map((share) => ({
        name: percent(share),
        ready: { ...NONE, min: 1, max: MAX_SPARE, spare: { share } },
      })),
    },
    {
      name: 'forecast',
      variants: SHARES.map((servedAtOnce) => ({
        name: percent(servedAtOnce),
        ready: { ...NONE, forecast: { servedAtOnce, affordable: Infinity } },
      })),
    },
  ];
}
