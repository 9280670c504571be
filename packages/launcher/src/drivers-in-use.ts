/** Tells everybody which drivers a launcher uses, in which versions: the log, the metrics, the component registry. */

import type { DriverPackage, Logger, Metrics, NodepoolConfig } from '@nodepool/core';
import { DRIVER_INFO } from './observe/launcher-metrics.js';

type Packages = ReadonlyMap<string, DriverPackage>;

export class DriversInUse {
  private packages: Packages = new Map();

  constructor(
    private readonly log: Logger,
    private readonly metrics: Metrics,
  ) {}

  /** The configuration that is in force from now on. */
  apply({ driverPackages = new Map() }: Pick<NodepoolConfig, 'driverPackages'>): void {
    for (const [driver, before] of this.packages) this.report(driver, before, undefined);
    for (const [driver, now] of driverPackages) {
      this.report(driver, now, 1);
      this.tell(driver, this.packages.get(driver), now);
    }
    this.packages = driverPackages;
  }

  private report(driver: string, from: DriverPackage, value: 1 | undefined): void {
    const { version, api } = from;
    this.metrics.set(DRIVER_INFO, { driver, package: from.package, version, api: String(api ?? '') }, value);
  }

  private tell(driver: string, before: DriverPackage | undefined, now: DriverPackage): void {
    const fields = { driver, package: now.package, version: now.version, folder: now.folder };
    if (before === undefined) this.log.info('Using driver', fields);
    else if (before.version !== now.version || before.folder !== now.folder) {
      this.log.info('Using another version of the driver', { ...fields, before: before.version });
    }
    for (const warning of now.warnings) {
      if (before?.warnings.includes(warning) === true) continue;
      this.log.warn('The driver is not as it should be', { ...fields, warning });
    }
  }
}

/** Versions by driver, for the component registry. */
export function driverVersions({ driverPackages }: Pick<NodepoolConfig, 'driverPackages'>): Record<string, string> {
  return Object.fromEntries([...(driverPackages ?? [])].map(([driver, { version }]) => [driver, version]));
}
