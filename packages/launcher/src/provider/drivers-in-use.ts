/** Publishes the drivers of a launcher and their versions in the log, the metrics and the component registry. */

import type { DriverPackage, NodepoolConfig } from '@nodepool/config';
import type { Logger, Metrics } from '@nodepool/core';
import { DRIVER_INFO } from '../metrics/launcher-metrics.js';

type Packages = ReadonlyMap<string, DriverPackage>;

export class DriversInUse {
  private packages: Packages = new Map();

  constructor(
    private readonly log: Logger,
    private readonly metrics: Metrics,
  ) {}

  apply({ driverPackages = new Map() }: Pick<NodepoolConfig, 'driverPackages'>): void {
    for (const [driver, before] of this.packages) this.report(driver, before, undefined);
    for (const [driver, now] of driverPackages) {
      this.report(driver, now, 1);
      const { package: name, version, folder } = now;
      if (this.packages.get(driver)?.folder !== folder) {
        this.log.info('Using driver', { driver, package: name, version, folder });
      }
    }
    this.packages = driverPackages;
  }

  private report(driver: string, from: DriverPackage, value: 1 | undefined): void {
    const { version, api } = from;
    this.metrics.set(DRIVER_INFO, { driver, package: from.package, version, api: String(api ?? '') }, value);
  }
}

/** Returns the version of each driver by name, for the component registry. */
export function driverVersions({ driverPackages }: Pick<NodepoolConfig, 'driverPackages'>): Record<string, string> {
  return Object.fromEntries([...(driverPackages ?? [])].map(([driver, { version }]) => [driver, version]));
}
