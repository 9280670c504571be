/** A driver whose nodes are slots of nodes of other labels. */
export { driver, driver as default } from './driver.js';
