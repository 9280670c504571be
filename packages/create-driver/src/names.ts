/** The names of a new driver. */

/** Names that replace those of a template. */
export interface DriverNames {
  /** Name in the configuration, `driver: NAME`. */
  readonly driver: string;
  /** Name in classes and types, e.g. `MyCloud`. */
  readonly pascal: string;
  /** Name in functions, e.g. `myCloud`. */
  readonly camel: string;
  /** Name of the npm package. */
  readonly package: string;
}

/** Names in the templates, which together form a working driver. */
const TEMPLATE_NAMES: DriverNames = {
  driver: 'mycloud',
  pascal: 'MyCloud',
  camel: 'myCloud',
  package: 'nodepool-driver-mycloud',
};

const DRIVER_NAME = /^[a-z][a-z0-9]*(-[a-z0-9]+)*$/;
const MAX_DRIVER_NAME = 60;
const PACKAGE_NAME = /^(@[a-z0-9~-][a-z0-9._~-]*\/)?[a-z0-9~-][a-z0-9._~-]*$/;
const MAX_PACKAGE_NAME = 214;

/**
 * Returns all names of a driver. `packageName` defaults to `nodepool-driver-NAME`. Throws a `RangeError` that describes
 * a valid name if one is invalid.
 */
export function namesOf(driver: string, packageName = `nodepool-driver-${driver}`): DriverNames {
  if (!DRIVER_NAME.test(driver) || driver.length > MAX_DRIVER_NAME) {
    throw new RangeError(
      `${JSON.stringify(driver)} is not a valid driver name: use lower-case letters and digits, in words joined by "-", ` +
        'starting with a letter, e.g. my-cloud',
    );
  }
  if (!PACKAGE_NAME.test(packageName) || packageName.length > MAX_PACKAGE_NAME) {
    throw new RangeError(`${JSON.stringify(packageName)} is not a valid package name such as @acme/nodepool-driver-x`);
  }
  const pascal = driver
    .split('-')
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join('');
  return { driver, pascal, camel: pascal.charAt(0).toLowerCase() + pascal.slice(1), package: packageName };
}

/** Returns the text of a template with the names of a driver. */
export function renamed(text: string, names: DriverNames): string {
  // Replace the longest name first, since the package's name contains the driver's.
  return text
    .replaceAll(TEMPLATE_NAMES.package, names.package)
    .replaceAll(TEMPLATE_NAMES.pascal, names.pascal)
    .replaceAll(TEMPLATE_NAMES.camel, names.camel)
    .replaceAll(TEMPLATE_NAMES.driver, names.driver);
}
