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
/** Words that YAML 1.1 does not read as texts. */
const YAML_WORDS: ReadonlySet<string> = new Set(['false', 'no', 'null', 'off', 'on', 'true', 'yes']);
/** Names of functions that the templates import from core, e.g. `stateMachineDriver`. */
const CORE_NAMES: ReadonlySet<string> = new Set(['simple-task-manager', 'state-machine']);
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
  if (YAML_WORDS.has(driver) || CORE_NAMES.has(driver)) {
    const use = YAML_WORDS.has(driver) ? 'YAML does not read it as a text' : '@nodepool/core uses it';
    throw new RangeError(`${JSON.stringify(driver)} is not a valid driver name: ${use}; choose another name`);
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

/** The names in the order of their search: the package's name contains the driver's. */
const KINDS = ['package', 'pascal', 'camel', 'driver'] as const;
const TEMPLATE_NAME = new RegExp(KINDS.map((kind) => TEMPLATE_NAMES[kind]).join('|'), 'g');

/** Returns the text of a template with the names of a driver. */
export function renamed(text: string, names: DriverNames): string {
  // Replaces in one pass, since a new name can contain one of the template, e.g. mycloud-2.
  return text.replace(TEMPLATE_NAME, (found) => {
    const kind = KINDS.find((each) => TEMPLATE_NAMES[each] === found);
    return kind === undefined ? found : names[kind];
  });
}
