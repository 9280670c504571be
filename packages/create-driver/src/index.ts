/** Creates a driver: writes a working package from a template. */
export { createDriver, CreateDriverError, type CreatedDriver, type CreateDriverOptions } from './create.js';
export { FRAMEWORKS, type Framework } from './frameworks.js';
export { namesOf, type DriverNames } from './names.js';
