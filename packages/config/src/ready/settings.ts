/** The settings of `ready`: how many nodes of a label are kept ready. */

export interface ReadySettings {
  /** Fewest ready nodes. */
  readonly min: number;
  /** Most ready nodes; Infinity: no limit. */
  readonly max: number;
  /** Ready nodes by the number of nodes in use; undefined if they do not follow use. */
  readonly spare: Spare | undefined;
  /** Times of day or week with values of their own; of several that apply, the last one decides. */
  readonly schedule: readonly ScheduleEntry[];
  /** Undefined if demand is not forecast. */
  readonly forecast: ForecastSettings | undefined;
}

/** `nodes`: so many more than nodes in use; `share`: this part of the nodes in use, 0.2 for 20 %. */
export type Spare = { readonly nodes: number } | { readonly share: number };

export interface ScheduleEntry extends Partial<Pick<ReadySettings, 'min' | 'max' | 'spare'>> {
  /** Pattern of five fields, at whose times the entry begins to apply. */
  readonly cron: string;
  /** Pattern of the times at which it ends; undefined: it ends when an entry of the schedule begins to apply. */
  readonly until: string | undefined;
  /** Name of a time zone, e.g. `Europe/Berlin`. */
  readonly timezone: string;
}

export interface ForecastSettings {
  /** Share of the nodes of requests that are ready when they are requested, between 0 and 1. */
  readonly servedAtOnce: number;
  /** Most ready nodes that the cost allows: the permitted cost per hour over the cost of one idle node per hour. */
  readonly affordable: number;
}

/** Default of `served-at-once`. */
export const DEFAULT_SERVED_AT_ONCE = 0.95;
