/** A Nodepool driver for mycloud. A launcher loads `driver`. */
export { driver, myCloudDriver, type MyCloudDriverOptions } from './driver.js';
