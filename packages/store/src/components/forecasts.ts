import type { ComponentStore } from './component-store.js';

/** A forecast of the number of ready nodes, in milliseconds. */
interface Forecast {
  /** Start of the first quarter of an hour, since the epoch. */
  readonly from: number;
  readonly counts: readonly number[];
  readonly leadMs: number;
}

/** Returns the newest forecast for the label that a launcher publishes; undefined if there is none. */
export function newestForecast(components: Pick<ComponentStore, 'all'>, label: string): Forecast | undefined {
  let newest: Forecast | undefined;
  for (const { component } of components.all('launcher')) {
    const forecasts = component.forecasts ?? {};
    const forecast = Object.hasOwn(forecasts, label) ? forecasts[label] : undefined;
    if (forecast === undefined || (newest !== undefined && newest.from >= forecast.from * 1000)) continue;
    newest = { from: forecast.from * 1000, counts: forecast.counts, leadMs: forecast.lead * 1000 };
  }
  return newest;
}
